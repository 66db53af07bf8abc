// The measured times, as tables for people and as a file for `make bench-kernels`.
package io.lanewise.jmh;

import io.lanewise.jmh.Plan.Cell;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Nanoseconds a call, a number a round; medians, and ratios within a round.
 *
 * @param nanoseconds of each cell, in the order of {@link Plan#cells}
 */
record Report(Plan plan, Map<Cell, List<Double>> nanoseconds) {
  /** The first line of the file: the columns that {@code crates/bench/kernels} reads. */
  static final String CSV_HEAD = "kernel,dims,way,ns\n";

  /** A table a subject: operations a microsecond, as document 000 gives them. */
  String markdown() {
    StringBuilder text = new StringBuilder();
    for (Subject subject : Subject.values()) text.append(table(subject));
    return text.toString();
  }

  /** A line a cell: the median. */
  String csv() {
    StringBuilder text = new StringBuilder(CSV_HEAD);
    nanoseconds.forEach(
        (cell, times) ->
            text.append(
                format(
                    "%s,%d,%s,%.3f\n",
                    cell.subject().kernel, cell.dims(), cell.way(), median(times))));
    return text.toString();
  }

  private String table(Subject subject) {
    List<Integer> sizes =
        nanoseconds.keySet().stream()
            .filter(cell -> cell.subject() == subject)
            .map(Cell::dims)
            .distinct()
            .toList();
    if (sizes.isEmpty())
      return format(
          "\n%s: not measured, no liblanewise_kernels with lw_%s\n", subject.title, subject.kernel);
    List<String> ways = plan.ways(subject);
    StringBuilder head = new StringBuilder("| dimensions | Lucene (ops/µs) |");
    StringBuilder rule = new StringBuilder("|---|---|");
    for (String way : ways.subList(1, ways.size())) {
      head.append(" ").append(title(way)).append(" (ops/µs) | speedup |");
      rule.append("---|---|");
    }
    StringBuilder rows = new StringBuilder();
    for (int dims : sizes) rows.append(row(subject, dims, ways));
    return format("\n%s\n\n%s\n%s\n%s", subject.title, head, rule, rows);
  }

  private String row(Subject subject, int dims, List<String> ways) {
    List<Double> lucene = nanoseconds.get(new Cell(subject, dims, "lucene"));
    StringBuilder row = new StringBuilder(format("| %d | %.1f |", dims, 1000 / median(lucene)));
    for (String way : ways.subList(1, ways.size())) {
      List<Double> times = nanoseconds.get(new Cell(subject, dims, way));
      Double[] ratios = new Double[times.size()];
      Arrays.setAll(ratios, round -> lucene.get(round) / times.get(round));
      row.append(format(" %.1f | %.2f× |", 1000 / median(times), median(List.of(ratios))));
    }
    return row.append("\n").toString();
  }

  private static String title(String way) {
    return switch (way) {
      case "heap" -> "native, heap";
      case "offHeap" -> "native, off heap";
      default -> "native, copied in";
    };
  }

  private static double median(List<Double> values) {
    List<Double> sorted = values.stream().sorted().toList();
    int half = sorted.size() / 2;
    return sorted.size() % 2 == 1
        ? sorted.get(half)
        : (sorted.get(half - 1) + sorted.get(half)) / 2;
  }

  /** With a point in numbers, whatever the user's language. */
  private static String format(String text, Object... values) {
    return String.format(Locale.ROOT, text, values);
  }
}
