// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "examples/support/charts.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "tools/launch/process.h"
#include "tools/output_file.h"

namespace baton::examples {
namespace {

constexpr char kStyle[] = R"gp(set encoding utf8
set border 3 lc rgb "#666666"
set tics nomirror out tc rgb "#333333"
set grid ytics lc rgb "#dddddd" lt 1
set yrange [0:*]
set ylabel "seconds (lower is better)"
)gp";

// gnuplot reads a doubled quote in single quotes as one.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'') quoted += '\'';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + "'";
}

// Returns a label for a data block. Quotes, backslashes and line ends, which
// would end or change it, become spaces.
std::string Label(const std::string& text) {
  std::string label = "\"";
  for (char c : text) label += c == '"' || c == '\\' || c == '\n' ? ' ' : c;
  return label + "\"";
}

// Returns a program that runs `plot` once for each image format.
std::string Program(const std::string& name, const std::string& title,
                    const std::string& data, const std::string& setup,
                    const std::string& plot) {
  return absl::StrCat(
      "# Draws ", name, ".png and ", name, ".svg; run by gnuplot.\n", "$data ",
      "<< END\n", data, "END\n", kStyle, "set title ", Quoted(title),
      " noenhanced\n", setup, "do for [kind in 'png svg'] {\n",
      "  if (kind eq 'png') { set terminal pngcairo size 900,540 font 'Sans,12'"
      " }\n  else { set terminal svg size 900,540 dynamic font 'Sans,12' }\n",
      "  set output '", name, ".'.kind\n  ", plot, "\n  unset output\n}\n");
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[1024];
  ssize_t n;
  while ((n = ::read(fd, buffer, sizeof(buffer))) > 0)
    text.append(buffer, static_cast<size_t>(n));
  return text;
}

absl::Status RunGnuplot(const std::string& folder, const std::string& program) {
  tools::ProcessSpec spec;
  spec.name = "gnuplot";
  spec.args = {"gnuplot", "-e",
               absl::StrCat("cd ", Quoted(folder), "; load ", Quoted(program))};
  spec.capture_output = true;
  const auto process = tools::StartProcess(spec);
  if (absl::IsNotFound(process.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no charts, because gnuplot is missing: install gnuplot-nox, then run "
        "gnuplot in ",
        folder, " on the .gp files there"));
  }
  if (!process.ok()) return process.status();
  ::fcntl(process->output, F_SETFL, 0);  // reads block until the end
  std::string said = ReadAll(process->output);
  int status = 0;
  ::waitpid(process->pid, &status, 0);
  ::close(process->output);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  std::replace(said.begin(), said.end(), '\n', ' ');
  return absl::InternalError(
      absl::StrCat("gnuplot failed on ", folder, "/", program, ":", said));
}

std::vector<Measurement> NotPipelined(
    const std::vector<Measurement>& measurements) {
  std::vector<Measurement> found;
  for (const Measurement& m : measurements) {
    if (m.split_size == 0) found.push_back(m);
  }
  return found;
}

std::string BarChart(const std::string& name, const std::string& title,
                     const std::vector<Measurement>& measurements) {
  std::string data;
  for (const Measurement& m : measurements) {
    const Summary s = Summarize(m);
    absl::StrAppendFormat(&data, "%s %.6g %.6g\n", Label(m.variant), s.mean_s,
                          s.std_s);
  }
  return Program(
      name, title, data,
      "set style fill solid 0.85 noborder\nset boxwidth 0.55\n"
      "set errorbars lw 1.5\nset xrange [-0.6:*]\nunset key\n"
      "stats $data using ($2+$3) nooutput name 'y'\n"
      "set yrange [0:y_max * 1.12]\n"
      "set xrange [-0.6:y_records - 0.4]\n",
      "plot $data using 0:2:xtic(1) with boxes lc rgb '#3b6ea5', "
      "$data using 0:2:3 with yerrorbars lc rgb '#222222' pt 7 ps 0, "
      "$data using 0:($2 + $3):(sprintf('%.3g s', $2)) with labels "
      "offset 0,0.8");
}

}  // namespace

std::string WholeOrSplitChart(const std::string& title,
                              const std::vector<Measurement>& measurements) {
  const std::vector<Measurement> bars = NotPipelined(measurements);
  return bars.size() < 2 ? "" : BarChart("whole_or_split", title, bars);
}

std::string VariantsChart(const std::string& title,
                          const std::vector<Measurement>& measurements) {
  std::vector<Measurement> bars = NotPipelined(measurements);
  const Measurement* fastest = nullptr;
  for (const Measurement& m : measurements) {
    if (m.split_size == 0) continue;
    if (fastest == nullptr || Summarize(m).mean_s < Summarize(*fastest).mean_s)
      fastest = &m;
  }
  if (fastest != nullptr) bars.push_back(*fastest);
  return BarChart("variants", title, bars);
}

std::string SplitSizesChart(const std::string& title,
                            const std::vector<Measurement>& measurements) {
  std::vector<Measurement> pipelined;
  for (const Measurement& m : measurements) {
    if (m.split_size > 0) pipelined.push_back(m);
  }
  if (pipelined.size() < 2) return "";
  std::sort(pipelined.begin(), pipelined.end(),
            [](const Measurement& a, const Measurement& b) {
              return a.split_size < b.split_size;
            });
  std::string data;
  for (const Measurement& m : pipelined) {
    const Summary s = Summarize(m);
    absl::StrAppendFormat(&data, "%d %.6g %.6g\n", m.split_size, s.mean_s,
                          s.std_s);
  }
  std::string plot =
      "plot $data using 1:2:3:xtic(1) with yerrorlines lc rgb '#3b6ea5' lw 2 "
      "pt 7 "
      "title 'pipelined'";
  const char* colours[] = {"#a53b3b", "#c98a1b", "#4d8a4d", "#777777"};
  size_t next = 0;
  for (const Measurement& m : measurements) {
    if (m.split_size > 0) continue;
    absl::StrAppendFormat(&plot, ", %.6g with lines dt 2 lw 1.5 lc rgb '%s' %s",
                          Summarize(m).mean_s, colours[next++ % 4],
                          absl::StrCat("title ", Quoted(m.variant)));
  }
  return Program("split_sizes", title, data,
                 "set xlabel 'rows of a micro-batch'\nset key outside bottom "
                 "center horizontal "
                 "noenhanced\nset offsets graph 0.05, graph 0.05\n",
                 plot);
}

std::string CurvesChart(const std::string& name, const std::string& title,
                        const std::string& x_label, const std::string& y_label,
                        const std::vector<Curve>& curves) {
  // Separates blocks of points, which gnuplot numbers, by two blank lines.
  std::string data, plot;
  for (size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = curves[i];
    for (size_t k = 0; k < curve.x.size(); ++k)
      absl::StrAppendFormat(&data, "%.6g %.6g\n", curve.x[k], curve.y[k]);
    data += "\n\n";
    absl::StrAppendFormat(
        &plot,
        "%s$data index %d using 1:2 with linespoints lw 2 pt 7 ps 0.5 "
        "title %s noenhanced",
        i == 0 ? "plot " : ", ", i, Quoted(curve.name));
  }
  return Program(name, title, data,
                 absl::StrCat("set xlabel ", Quoted(x_label), "\nset ylabel ",
                              Quoted(y_label), "\nset key bottom right\n"),
                 plot);
}

std::string LossChart(const std::string& title,
                      const std::vector<Measurement>& measurements) {
  std::vector<Curve> curves;
  for (const Measurement& measured : measurements) {
    for (const Detail& detail : measured.details) {
      if (detail.name != "losses") continue;
      Curve curve{.name = measured.variant,
                  .y = std::get<std::vector<double>>(detail.value)};
      for (size_t step = 1; step <= curve.y.size(); ++step)
        curve.x.push_back(static_cast<double>(step));
      curves.push_back(std::move(curve));
    }
  }
  return CurvesChart("loss", title, "steps", "loss", curves);
}

absl::StatusOr<std::vector<std::string>> WriteCharts(
    const std::string& folder, const std::string& title,
    const std::vector<Measurement>& measurements) {
  return DrawCharts(folder,
                    {{"whole_or_split", WholeOrSplitChart(title, measurements)},
                     {"variants", VariantsChart(title, measurements)},
                     {"split_sizes", SplitSizesChart(title, measurements)}});
}

absl::StatusOr<std::vector<std::string>> DrawCharts(
    const std::string& folder,
    const std::vector<std::pair<std::string, std::string>>& charts) {
  RETURN_IF_ERROR(tools::CheckOutputFolder(folder));
  for (const auto& [name, program] : charts) {
    if (program.empty()) continue;
    RETURN_IF_ERROR(
        tools::WriteOutput(absl::StrCat(folder, "/", name, ".gp"), program));
  }
  std::vector<std::string> drawn;
  for (const auto& [name, program] : charts) {
    if (program.empty()) continue;
    RETURN_IF_ERROR(RunGnuplot(folder, name + ".gp"));
    for (const char* kind : {".png", ".svg"})
      drawn.push_back(absl::StrCat(folder, "/", name, kind));
  }
  return drawn;
}

absl::StatusOr<std::string> TellDrawn(
    const absl::StatusOr<std::vector<std::string>>& drawn) {
  if (drawn.ok())
    return absl::StrCat("charts: ", absl::StrJoin(*drawn, " "), "\n");
  if (!absl::IsFailedPrecondition(drawn.status())) return drawn.status();
  return absl::StrCat(drawn.status().message(), "\n");
}

}  // namespace baton::examples
