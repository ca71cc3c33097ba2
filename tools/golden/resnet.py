#!/usr/bin/python3
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/resnet*: what PyTorch computes for a narrow ResNet50, and torchvision's names.

Debian: apt-get install python3-torch python3-torchvision; run with /usr/bin/python3.
  resnet50_narrow_state.safetensors  the state dict to start from
  resnet50_narrow_run.safetensors    images and labels; logits in train and eval mode; gradients of the cross-entropy
                                     and running statistics after the first step; losses of ten SGD steps
  resnet_names.txt                   "depth name extents" for every entry of the full models' state dicts
"""
import copy
import pathlib

import torch
import torchvision
from torchvision.models.resnet import Bottleneck, ResNet

import safetensors_file

OUT = pathlib.Path(__file__).resolve().parents[2] / 'tests' / 'golden'
WIDTH, CLASSES, BATCH, IMAGE, STEPS = 4, 10, 8, 64, 10
# At a kink of a ReLU, float32's rounding decides the side, and a narrow net on a small batch amplifies that: with
# large steps even PyTorch's own two CPU backends differ by 1e-2 after ten. So float32 takes small steps, from a seed
# for which they agree to 1e-6, and float64 takes large ones. Branches start small for the same reason.
SEED, LR_FLOAT32, LR_FLOAT64, BRANCH_SCALE = 8, 0.001, 0.03, 0.2


class NarrowResNet(ResNet):
    """Returns torchvision's ResNet50 with WIDTH channels instead of 64."""

    def __init__(self):
        torch.nn.Module.__init__(self)
        nn = torch.nn
        self._norm_layer, self.groups, self.base_width, self.dilation = nn.BatchNorm2d, 1, 64, 1
        self.inplanes = WIDTH
        self.conv1 = nn.Conv2d(3, WIDTH, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTH)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._make_layer(Bottleneck, WIDTH, 3)
        self.layer2 = self._make_layer(Bottleneck, WIDTH * 2, 4, stride=2)
        self.layer3 = self._make_layer(Bottleneck, WIDTH * 4, 6, stride=2)
        self.layer4 = self._make_layer(Bottleneck, WIDTH * 8, 3, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(WIDTH * 8 * 4, CLASSES)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode='fan_out', nonlinearity='relu')
            elif isinstance(m, Bottleneck):
                nn.init.constant_(m.bn3.weight, BRANCH_SCALE)


def losses_of(model, images, labels, lr):
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=lr), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def narrow_run():
    torch.manual_seed(SEED)
    model = NarrowResNet().train()
    state = {k: v.numpy().copy() for k, v in model.state_dict().items()}
    safetensors_file.write(OUT / 'resnet50_narrow_state.safetensors', state)
    images, labels = torch.randn(BATCH, 3, IMAGE, IMAGE), torch.randint(0, CLASSES, (BATCH,))
    run = dict(images=images.numpy(), labels=labels.numpy())
    run['logits_eval'] = copy.deepcopy(model).eval()(images).detach().numpy()
    once = copy.deepcopy(model)
    logits = once(images)
    torch.nn.functional.cross_entropy(logits, labels).backward()
    run['logits_train'] = logits.detach().numpy()
    for name, parameter in once.named_parameters():
        run['grad.' + name] = parameter.grad.numpy()
    for name, value in once.named_buffers():
        run['buffer.' + name] = value.numpy()
    double = copy.deepcopy(model).double()
    small = losses_of(copy.deepcopy(double), images.double(), labels, LR_FLOAT32)
    run['losses_float64'] = losses_of(double, images.double(), labels, LR_FLOAT64).numpy()
    losses = losses_of(model, images, labels, LR_FLOAT32)
    run['losses_float32'] = losses.numpy()
    away = ((losses - small) / small).abs().max().item()
    print(f'losses {losses[0]:.4f} .. {losses[-1]:.4f}, relative to float64 at most {away:.1e}')
    safetensors_file.write(OUT / 'resnet50_narrow_run.safetensors', run,
                           dict(lr_float32=str(LR_FLOAT32), lr_float64=str(LR_FLOAT64), torch=torch.__version__))



def names():
    lines = []
    for depth in (18, 34, 50, 101, 152):
        model = getattr(torchvision.models, f'resnet{depth}')()
        lines += [f'{depth} {k} {"x".join(map(str, v.shape)) or "scalar"}' for k, v in model.state_dict().items()]
    (OUT / 'resnet_names.txt').write_text('\n'.join(lines) + '\n')


if __name__ == '__main__':
    OUT.mkdir(parents=True, exist_ok=True)
    narrow_run()
    names()
