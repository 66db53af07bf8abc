// What a run measures, as its command line says.
package io.lanewise.jmh;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;

/**
 * How much is measured, and the file that the figures go to beside the printed tables.
 *
 * @param csv the file; empty for none
 */
record Plan(Extent extent, Optional<Path> csv) {
  static final String USAGE = "[--quick | --full] [--csv PATH]";

  private static final List<String> WAYS = List.of("lucene", "heap", "offHeap", "copyIn");
  private static final List<String> BRIEF_WAYS = List.of("lucene", "heap");
  private static final List<Integer> DIMS = List.of(256, 768, 1024, 4096);
  private static final List<Integer> BRIEF_DIMS = List.of(768, 1024);
  private static final List<Integer> QUICK_DIMS = List.of(768);

  /** How much is measured, and how often. */
  enum Extent {
    /** Half a minute: does it run, and about how fast. */
    QUICK(1),
    /** Some four minutes: one subject whole, of the others two sizes and two ways. */
    BRIEF(3),
    /** Some 25 minutes: everything. */
    FULL(5);

    final int rounds;

    Extent(int rounds) {
      this.rounds = rounds;
    }
  }

  /** One figure: how a subject is called, with vectors of how many numbers. */
  record Cell(Subject subject, int dims, String way) {}

  /**
   * Reads the command line.
   *
   * @throws IllegalArgumentException with a text for the user
   */
  static Plan parse(String... args) {
    Extent extent = null;
    Optional<Path> csv = Optional.empty();
    for (int i = 0; i < args.length; i++) {
      switch (args[i]) {
        case "--quick", "--full" -> {
          if (extent != null) throw new IllegalArgumentException("--quick or --full, once");
          extent = args[i].equals("--full") ? Extent.FULL : Extent.QUICK;
        }
        case "--csv" -> {
          if (++i == args.length) throw new IllegalArgumentException("--csv takes a path");
          csv = Optional.of(Path.of(args[i]));
        }
        default -> throw new IllegalArgumentException("unknown argument " + args[i] + "; " + USAGE);
      }
    }
    return new Plan(extent == null ? Extent.BRIEF : extent, csv);
  }

  /** The ways in which {@code subject} is called, Lucene's own first. */
  List<String> ways(Subject subject) {
    return extent == Extent.FULL || subject.whole ? WAYS : BRIEF_WAYS;
  }

  private List<Integer> dims(Subject subject) {
    if (extent == Extent.QUICK) return QUICK_DIMS;
    return extent == Extent.FULL || subject.whole ? DIMS : BRIEF_DIMS;
  }

  /** All that is measured; of the kernel library's what is among its {@code exported} names. */
  List<Cell> cells(Predicate<String> exported) {
    List<Cell> cells = new ArrayList<>();
    for (Subject subject : Subject.values()) {
      if (subject.isKernel && !exported.test("lw_" + subject.kernel)) continue;
      for (int dims : dims(subject))
        for (String way : ways(subject)) cells.add(new Cell(subject, dims, way));
    }
    return cells;
  }
}
