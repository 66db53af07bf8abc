// Runs the benchmarks and prints the tables: Lucene's own code against the library, on heap arrays,
// on native memory and with operands copied in. One process a measurement, in shuffled rounds.
package io.lanewise.jmh;

import io.lanewise.jmh.Plan.Cell;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
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

/** The program: {@code java … io.lanewise.jmh.Table}, with the arguments of {@link Plan#USAGE}. */
public final class Table {
  private Table() {}

  /** Measures, then prints Markdown on standard output; progress goes to standard error. */
  public static void main(String[] args) throws RunnerException, IOException {
    Plan plan;
    try {
      plan = Plan.parse(args);
    } catch (IllegalArgumentException e) {
      System.err.println(e.getMessage());
      System.exit(2);
      return;
    }
    if (plan.csv().isPresent()) makeFolder(plan.csv().get());
    Report report = new Report(plan, measure(plan));
    System.out.printf(
        "%s, Java %s, Lucene %s, LANEWISE_ISA %s, rounds: %d (medians; speedups of each round's).%n",
        processor(),
        Runtime.version(),
        Version.LATEST,
        System.getenv().getOrDefault("LANEWISE_ISA", "not set"),
        plan.extent().rounds);
    System.out.print(report.markdown());
    if (plan.csv().isPresent()) {
      Files.writeString(plan.csv().get(), report.csv());
      System.err.println("writing " + plan.csv().get());
    }
  }

  /** Finds out before the measuring, and not after it, that the file cannot be written. */
  private static void makeFolder(Path csv) {
    try {
      Path folder = Files.createDirectories(csv.toAbsolutePath().getParent());
      if (Files.isWritable(Files.exists(csv) ? csv : folder)) return;
      System.err.println("--csv " + csv + ": may not be written; name another file");
    } catch (IOException e) {
      System.err.println("--csv " + csv + ": its folder cannot be made (" + e + ")");
    }
    System.exit(1);
  }

  private static Map<Cell, List<Double>> measure(Plan plan) throws RunnerException {
    List<Cell> cells = plan.cells(KernelLibrary::exports);
    Map<Cell, List<Double>> nanoseconds = new LinkedHashMap<>();
    for (Cell cell : cells) nanoseconds.put(cell, new ArrayList<>());
    for (int round = 0; round < plan.extent().rounds; round++) {
      Collections.shuffle(cells, new Random(round));
      for (Cell cell : cells) nanoseconds.get(cell).add(measure(cell));
      System.err.println("round " + (round + 1) + " of " + plan.extent().rounds + " done");
    }
    return nanoseconds;
  }

  /**
   * Nanoseconds a call: the best of the iterations of one process, the one that others disturbed
   * least.
   */
  private static double measure(Cell cell) throws RunnerException {
    var options =
        new OptionsBuilder()
            .include("^" + Pattern.quote(cell.subject().code.getName() + "." + cell.way()) + "$")
            .param("dims", Integer.toString(cell.dims()))
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

  private static String processor() throws IOException {
    Path info = Path.of("/proc/cpuinfo");
    if (Files.exists(info))
      for (String line : Files.readAllLines(info))
        if (line.startsWith("model name")) return line.substring(line.indexOf(':') + 1).strip();
    return System.getProperty("os.arch");
  }
}
