// The command line, and what it has measured.
package io.lanewise.jmh;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lanewise.jmh.Plan.Cell;
import io.lanewise.jmh.Plan.Extent;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PlanTest {
  @Test
  void argumentsAreRead() {
    assertEquals(new Plan(Extent.BRIEF, Optional.empty()), Plan.parse());
    assertEquals(
        new Plan(Extent.QUICK, Optional.of(Path.of("a.csv"))),
        Plan.parse("--csv", "a.csv", "--quick"));
    assertEquals(Extent.FULL, Plan.parse("--full").extent());
  }

  @ParameterizedTest
  @ValueSource(strings = {"--fast", "--csv", "--quick --full", "--full --full", "a.csv"})
  void wrongArgumentsAreRefused(String line) {
    assertThrows(IllegalArgumentException.class, () -> Plan.parse(line.split(" ")));
  }

  @Test
  void theBriefRunHasOneSubjectWholeAndSomeOfEachOther() {
    List<Cell> cells = Plan.parse().cells(name -> true);
    assertEquals(4 * 4 + 6 * 2 * 2, cells.size());
    assertTrue(cells.contains(new Cell(Subject.INT8_DOT, 256, "copyIn")));
    assertTrue(cells.contains(new Cell(Subject.HAMMING, 768, "heap")));
    assertEquals(cells.size(), cells.stream().distinct().count());
    assertEquals(7 * 4 * 4, Plan.parse("--full").cells(name -> true).size());
    assertEquals(4 + 6 * 2, Plan.parse("--quick").cells(name -> true).size());
  }

  @Test
  void withoutAKernelTheRestIsMeasured() {
    List<Cell> cells = Plan.parse().cells(name -> !name.equals("lw_dot_f32"));
    assertTrue(cells.stream().noneMatch(cell -> cell.subject() == Subject.FLOAT32_DOT));
    assertEquals(4 * 4 + 5 * 2 * 2, cells.size());
  }
}
