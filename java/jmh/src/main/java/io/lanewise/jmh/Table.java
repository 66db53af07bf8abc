// Runs the benchmarks and prints the tables: Lucene's own code against the library, on heap arrays,
// on native memory
// and with operands copied in. One process a measurement, in shuffled rounds; medians, and ratios
// within a round.
package io.lanewise.jmh;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.regex.Pattern;
import org.apache.lucene.util.Version;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/**
 * {@code java … io.lanewise.jmh.Table [--full]}: about four minutes, or about 25 with {@code
 * --full}.
 */
public final class Table {
  private static final List<String> WAYS = List.of("lucene", "heap", "offHeap", "copyIn");
  private static final List<String> BRIEF_WAYS = List.of("lucene", "heap");
  private static final List<Integer> DIMS = List.of(256, 768, 1024, 4096);

  /**
   * A benchmark. The short run measures those that are {@code whole} in every size and way, of
   * others two sizes and two ways.
   */
  private record Subject(Class<?> code, String title, boolean whole, boolean needsKernels) {}

  private static final List<Subject> SUBJECTS =
      List.of(
          new Subject(Int8Dot.class, "int8 dot", true, false),
          new Subject(Uint8Dot.class, "uint8 dot", false, false),
          new Subject(Int8Square.class, "int8 squared distance", false, false),
          new Subject(Int4Dot.class, "int4 dot, one a byte", false, false),
          new Subject(Int4DotSinglePacked.class, "int4 dot, single packed", false, false),
          new Subject(Hamming.class, "Hamming, bits", false, true),
          new Subject(Float32Dot.class, "float dot", false, true));

  private record Cell(Subject subject, int dims, String way) {}

  private final boolean full;
  private final int rounds;
  private final Map<Cell, List<Double>> nanoseconds = new LinkedHashMap<>();

  private Table(boolean full) {
    this.full = full;
    this.rounds = full ? 5 : 3;
  }

  /** Measures, then prints Markdown on standard output; progress goes to standard error. */
  public static void main(String[] args) throws RunnerException, IOException {
    List<String> unknown = Arrays.stream(args).filter(arg -> !arg.equals("--full")).toList();
    if (!unknown.isEmpty()) {
      System.err.println("unknown argument " + unknown.get(0) + ": there is --full and no other");
      System.exit(2);
    }
    Table table = new Table(args.length > 0);
    table.measure();
    table.print();
  }

  private List<Cell> cells() {
    List<Cell> cells = new ArrayList<>();
    for (Subject subject : SUBJECTS) {
      if (subject.needsKernels && KernelLibrary.path().isEmpty()) continue;
      boolean whole = full || subject.whole;
      for (int dims : whole ? DIMS : List.of(768, 1024))
        for (String way : whole ? WAYS : BRIEF_WAYS) cells.add(new Cell(subject, dims, way));
    }
    return cells;
  }

  private void measure() throws RunnerException {
    List<Cell> cells = cells();
    for (Cell cell : cells) nanoseconds.put(cell, new ArrayList<>());
    for (int round = 0; round < rounds; round++) {
      Collections.shuffle(cells, new Random(round));
      for (Cell cell : cells) nanoseconds.get(cell).add(measure(cell));
      System.err.println("round " + (round + 1) + " of " + rounds + " done");
    }
  }

  /**
   * Nanoseconds a call: the best of the iterations of one process, the one that others disturbed
   * least.
   */
  private static double measure(Cell cell) throws RunnerException {
    var options =
        new OptionsBuilder()
            .include("^" + Pattern.quote(cell.subject.code.getName() + "." + cell.way) + "$")
            .param("dims", Integer.toString(cell.dims))
            .forks(1)
            // Compiles before it runs on, so that a busy machine's late compiler is not measured.
            .jvmArgsAppend("-Xbatch")
            .warmupIterations(4)
            .warmupTime(TimeValue.milliseconds(150))
            // Short enough for some to be over before another process gets the core.
            .measurementIterations(80)
            .measurementTime(TimeValue.milliseconds(5))
            .verbosity(VerboseMode.SILENT)
            .shouldFailOnError(true)
            .build();
    return silently(() -> new Runner(options).runSingle()).getBenchmarkResults().stream()
        .flatMap(result -> result.getIterationResults().stream())
        .mapToDouble(result -> result.getPrimaryResult().getScore())
        .min()
        .orElseThrow();
  }

  /** A measurement that may fail. */
  private interface Measurement {
    RunResult run() throws RunnerException;
  }

  /**
   * Keeps what the measured processes say, warnings of their JVMs among it, to show it if one
   * fails.
   */
  private static RunResult silently(Measurement measurement) throws RunnerException {
    PrintStream out = System.out;
    PrintStream err = System.err;
    var said = new ByteArrayOutputStream();
    var keep = new PrintStream(said, true, StandardCharsets.UTF_8);
    System.setOut(keep);
    System.setErr(keep);
    try {
      return measurement.run();
    } catch (RunnerException e) {
      err.println(said.toString(StandardCharsets.UTF_8));
      throw e;
    } finally {
      System.setOut(out);
      System.setErr(err);
    }
  }

  private void print() throws IOException {
    System.out.printf(
        "%s, Java %s, Lucene %s, LANEWISE_ISA %s, medians of %d rounds (speedups: of each round's).%n",
        processor(),
        Runtime.version(),
        Version.LATEST,
        System.getenv().getOrDefault("LANEWISE_ISA", "not set"),
        rounds);
    for (Subject subject : SUBJECTS) {
      if (subject.needsKernels && KernelLibrary.path().isEmpty()) {
        System.out.printf("%n%s: not measured, liblanewise_kernels is not there%n", subject.title);
        continue;
      }
      List<String> ways = full || subject.whole ? WAYS : BRIEF_WAYS;
      StringBuilder head = new StringBuilder("| dimensions | Lucene (ops/µs) |");
      StringBuilder rule = new StringBuilder("|---|---|");
      for (String way : ways.subList(1, ways.size())) {
        head.append(" ").append(title(way)).append(" (ops/µs) | speedup |");
        rule.append("---|---|");
      }
      System.out.printf("%n%s%n%n%s%n%s%n", subject.title, head, rule);
      for (int dims : DIMS) row(subject, dims, ways);
    }
  }

  private void row(Subject subject, int dims, List<String> ways) {
    List<Double> lucene = nanoseconds.get(new Cell(subject, dims, "lucene"));
    if (lucene == null) return;
    StringBuilder row = new StringBuilder(String.format("| %d | %.1f |", dims, perMicro(lucene)));
    for (String way : ways.subList(1, ways.size())) {
      List<Double> times = nanoseconds.get(new Cell(subject, dims, way));
      double[] ratios = new double[rounds];
      for (int i = 0; i < rounds; i++) ratios[i] = lucene.get(i) / times.get(i);
      row.append(String.format(" %.1f | %.2f× |", perMicro(times), median(ratios)));
    }
    System.out.println(row);
  }

  private static String title(String way) {
    return switch (way) {
      case "heap" -> "native, heap";
      case "offHeap" -> "native, off heap";
      default -> "native, copied in";
    };
  }

  private static double perMicro(List<Double> nanoseconds) {
    return 1000 / median(nanoseconds.stream().mapToDouble(Double::doubleValue).toArray());
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    int half = sorted.length / 2;
    return sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }

  private static String processor() throws IOException {
    Path info = Path.of("/proc/cpuinfo");
    if (Files.exists(info))
      for (String line : Files.readAllLines(info))
        if (line.startsWith("model name")) return line.substring(line.indexOf(':') + 1).strip();
    return System.getProperty("os.arch");
  }
}
