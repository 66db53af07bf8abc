// The library exports what it should, nothing of what must be left to Lucene, and no name of its
// own.
package io.lanewise.dropin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ExportsTest {
  static Set<String> exported() {
    return new TreeSet<>(LuceneSymbols.EXPORTED.keySet());
  }

  static Iterable<String> leftToLucene() {
    return LuceneSymbols.LEFT_TO_LUCENE;
  }

  @ParameterizedTest
  @MethodSource("exported")
  void isFound(String name) {
    assertTrue(LuceneSymbols.resolves(name));
  }

  @ParameterizedTest
  @MethodSource("leftToLucene")
  void isNotFound(String name) {
    assertFalse(LuceneSymbols.resolves(name));
  }

  @Test
  void everyOperationIsTested() {
    Set<String> tested =
        Arrays.stream(Operation.values())
            .map(operation -> operation.symbol)
            .collect(Collectors.toCollection(TreeSet::new));
    tested.add("int4DotProductSinglePackedBulk");
    assertEquals(exported(), tested);
  }

  @Test
  void nothingElseIsExported() throws IOException, InterruptedException {
    assumeTrue(System.getProperty("os.name").equals("Linux"), "nm lists an ELF library's symbols");
    Path nm = onPath("nm");
    assumeTrue(nm != null, "install binutils, for nm");
    Process process =
        new ProcessBuilder(nm.toString(), "-D", "--defined-only", library().toString())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    Set<String> names;
    try (var lines = process.inputReader()) {
      names =
          lines
              .lines()
              .map(line -> line.substring(line.lastIndexOf(' ') + 1))
              .collect(Collectors.toCollection(TreeSet::new));
    }
    assertEquals(0, process.waitFor());
    assertEquals(exported(), names);
  }

  private static Path library() {
    String name = System.mapLibraryName("dotProduct");
    return Arrays.stream(System.getProperty("java.library.path").split(java.io.File.pathSeparator))
        .map(folder -> Path.of(folder, name))
        .filter(Files::exists)
        .findFirst()
        .orElseThrow();
  }

  private static Path onPath(String program) {
    return Arrays.stream(System.getenv("PATH").split(java.io.File.pathSeparator))
        .map(folder -> Path.of(folder, program))
        .filter(Files::isExecutable)
        .findFirst()
        .orElse(null);
  }
}
