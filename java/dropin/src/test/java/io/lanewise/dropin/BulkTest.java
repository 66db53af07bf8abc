// The bulk function gives each row what the one-to-one function gives it, wherever rows lie, and
// writes no more results.
package io.lanewise.dropin;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.apache.lucene.util.VectorUtil;
import org.junit.jupiter.api.Test;

class BulkTest {
  /** Bytes of corrections that Lucene keeps behind each packed vector. */
  private static final int CORRECTIONS = 16;

  private static final int UNTOUCHED = 0x5a5a5a5a;
  private static final int ROWS = 50;
  private static final MethodHandle BULK = LuceneSymbols.handle("int4DotProductSinglePackedBulk");

  private final SplittableRandom random = new SplittableRandom(4);

  private static void call(
      byte[] query,
      MemorySegment rows,
      int stride,
      int[] ordinals,
      int count,
      int packed,
      int[] out)
      throws Throwable {
    BULK.invokeExact(
        MemorySegment.ofArray(query),
        rows,
        stride,
        MemorySegment.ofArray(ordinals),
        count,
        packed,
        MemorySegment.ofArray(out));
  }

  @Test
  void everyRowAsByItself() throws Throwable {
    for (int packed : new int[] {0, 1, 2, 7, 31, 32, 33, 63, 64, 100, 192, 384, 512, 2048}) {
      int stride = packed + CORRECTIONS;
      byte[] query = Operation.INT4_DOT_SINGLE.randomA(packed, random);
      byte[] rows = Operation.INT4_DOT_SINGLE.randomB(ROWS * stride, random);
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment mapped =
            arena.allocate(rows.length, 64).copyFrom(MemorySegment.ofArray(rows));
        for (int count = 0; count <= 40; count++) {
          int[] ordinals = new int[count + 3];
          for (int i = 0; i < ordinals.length; i++) ordinals[i] = random.nextInt(ROWS);
          int[] expected = new int[count + 3];
          Arrays.fill(expected, UNTOUCHED);
          for (int i = 0; i < count; i++) {
            int at = ordinals[i] * stride;
            byte[] row = Arrays.copyOfRange(rows, at, at + packed);
            expected[i] = VectorUtil.int4DotProductSinglePacked(query, row);
          }
          for (MemorySegment base : new MemorySegment[] {mapped, MemorySegment.ofArray(rows)}) {
            int[] out = new int[count + 3];
            Arrays.fill(out, UNTOUCHED);
            call(query, base, stride, ordinals, count, packed, out);
            assertArrayEquals(expected, out, packed + " bytes, " + count + " rows");
          }
        }
      }
    }
  }

  @Test
  void negativeCountsAndSizesAreEmpty() throws Throwable {
    byte[] query = Operation.INT4_DOT_SINGLE.filledA(8, 15);
    byte[] rows = Operation.INT4_DOT_SINGLE.filledB(64, 0xff);
    int[] ordinals = {0, 1};
    int[] out = {UNTOUCHED, UNTOUCHED};
    for (int count : new int[] {-1, Integer.MIN_VALUE})
      call(query, MemorySegment.ofArray(rows), 24, ordinals, count, 8, out);
    assertArrayEquals(new int[] {UNTOUCHED, UNTOUCHED}, out);
    call(query, MemorySegment.ofArray(rows), 24, ordinals, 2, -8, out);
    assertEquals("[0, 0]", Arrays.toString(out));
  }
}
