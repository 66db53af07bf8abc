// The tables and the file, from made-up times.
package io.lanewise.jmh;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lanewise.jmh.Plan.Cell;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ReportTest {
  private final Locale locale = Locale.getDefault();
  private final Map<Cell, List<Double>> times = new LinkedHashMap<>();
  private final Report report = new Report(Plan.parse("--quick"), times);

  @AfterEach
  void restoreLocale() {
    Locale.setDefault(locale);
  }

  private void square(String way, Double... nanoseconds) {
    times.put(new Cell(Subject.INT8_SQUARE, 768, way), List.of(nanoseconds));
  }

  @Test
  void speedupsAreFormedInsideARound() {
    // 2, 0.5 and 3; the ratio of the medians is 0.67.
    square("lucene", 10.0, 20.0, 90.0);
    square("heap", 5.0, 40.0, 30.0);
    assertTrue(
        report
            .markdown()
            .contains(
                """
                int8 squared distance

                | dimensions | Lucene (ops/µs) | native, heap (ops/µs) | speedup |
                |---|---|---|---|
                | 768 | 50.0 | 33.3 | 2.00× |
                """));
  }

  @Test
  void anEvenNumberOfRoundsHasItsMedianBetween() {
    square("lucene", 1.0, 2.0, 4.0, 9.0);
    assertEquals(Report.CSV_HEAD + "l2_i8,768,lucene,3.000\n", report.csv());
  }

  @Test
  void whatIsNotMeasuredIsNamed() {
    square("lucene", 1.0);
    square("heap", 1.0);
    assertTrue(report.markdown().contains("float dot: not measured"));
    assertTrue(!report.markdown().contains("int8 squared distance: not"));
  }

  @Test
  void theFileHasPointsInEveryLanguage() {
    Locale.setDefault(Locale.GERMANY);
    square("lucene", 34.7);
    square("heap", 11.125);
    assertEquals(
        "kernel,dims,way,ns\nl2_i8,768,lucene,34.700\nl2_i8,768,heap,11.125\n", report.csv());
  }
}
