// LANEWISE_ISA: every level computes the same, and a name that is none is said on standard error,
// once.
package io.lanewise.dropin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class LevelTest {
  /** What another process, started with LANEWISE_ISA, printed. */
  private record Output(String results, String errors) {}

  /** The other process: prints a number that every result went into. */
  public static void main(String[] args) {
    System.out.println(allResults());
  }

  private static long allResults() {
    SplittableRandom random = new SplittableRandom(5);
    long all = 0;
    for (Operation operation : Operation.values())
      for (int n : new int[] {1, 15, 16, 63, 64, 100, 384, 768, 1000}) {
        MemorySegment a = MemorySegment.ofArray(operation.randomA(n, random));
        MemorySegment b = MemorySegment.ofArray(operation.randomB(n, random));
        all = 31 * all + operation.byLibrary(a, b);
      }
    return all;
  }

  private static Output withLevel(String level) throws IOException, InterruptedException {
    ProcessBuilder builder =
        new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--enable-native-access=ALL-UNNAMED",
            "-Djava.library.path=" + System.getProperty("java.library.path"),
            "-cp",
            System.getProperty("java.class.path"),
            LevelTest.class.getName());
    builder.environment().put("LANEWISE_ISA", level);
    Path errors = java.nio.file.Files.createTempFile("lanewise", ".txt");
    try {
      Process process = builder.redirectError(errors.toFile()).start();
      String results;
      try (var lines = process.inputReader()) {
        results = lines.readLine();
      }
      String said = java.nio.file.Files.readString(errors);
      assertEquals(0, process.waitFor(), said);
      return new Output(results, said);
    } finally {
      java.nio.file.Files.delete(errors);
    }
  }

  private static List<String> complaints(Output output) {
    return output.errors().lines().filter(line -> line.startsWith("libdotProduct:")).toList();
  }

  @Test
  void anUnknownLevelIsNamedOnceAndEveryLevelAgrees() throws IOException, InterruptedException {
    String expected = Long.toString(allResults());
    Output unknown = withLevel("nonsense");
    assertEquals(expected, unknown.results());
    List<String> complaints = complaints(unknown);
    assertEquals(1, complaints.size(), unknown.errors());
    assertTrue(complaints.get(0).contains("LANEWISE_ISA names no level"), unknown.errors());

    String list = complaints.get(0).replaceFirst(".*Levels: ", "");
    List<String> levels = new ArrayList<>(List.of(list.split(" ")));
    assertTrue(levels.contains("scalar"), list);
    for (String level : levels) {
      Output output = withLevel(level);
      assertEquals(expected, output.results(), level);
      boolean absent = output.errors().contains("names a level that this CPU has not");
      assertEquals(absent ? 1 : 0, complaints(output).size(), output.errors());
      if (level.equals("scalar")) assertFalse(absent, output.errors());
    }
  }
}
