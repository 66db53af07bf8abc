// The packed layouts mean what Lucene's own packing code makes: a function of packed operands
// equals the plain sum over
// the numbers that were packed.
package io.lanewise.dropin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;
import org.apache.lucene.util.quantization.OptimizedScalarQuantizer;
import org.junit.jupiter.api.Test;

class PackingTest {
  private final SplittableRandom random = new SplittableRandom(3);

  private byte[] numbers(int count, int below) {
    byte[] numbers = new byte[count];
    for (int i = 0; i < count; i++) numbers[i] = (byte) random.nextInt(below);
    return numbers;
  }

  private static long dot(byte[] a, byte[] b) {
    long sum = 0;
    for (int i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
  }

  private static long square(byte[] a, byte[] b) {
    long sum = 0;
    for (int i = 0; i < a.length; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
  }

  /** As VectorUtil.int4DotProductSinglePacked documents it. */
  private static byte[] nibbles(byte[] raw) {
    byte[] packed = new byte[raw.length / 2];
    for (int i = 0; i < packed.length; i++)
      packed[i] = (byte) (raw[i] * 16 | raw[packed.length + i]);
    return packed;
  }

  private static long call(Operation operation, byte[] a, byte[] b) {
    return operation.byLibrary(MemorySegment.ofArray(a), MemorySegment.ofArray(b));
  }

  @Test
  void nibblesAreHighHalfFirst() {
    for (int dims = 0; dims <= 300; dims += 2) {
      byte[] a = numbers(dims, 16);
      byte[] b = numbers(dims, 16);
      assertEquals(dot(a, b), call(Operation.INT4_DOT, a, b));
      assertEquals(dot(a, b), call(Operation.INT4_DOT_SINGLE, a, nibbles(b)));
      assertEquals(dot(a, b), call(Operation.INT4_DOT_BOTH, nibbles(a), nibbles(b)));
      assertEquals(square(a, b), call(Operation.INT4_SQUARE, a, b));
      assertEquals(square(a, b), call(Operation.INT4_SQUARE_SINGLE, a, nibbles(b)));
      assertEquals(square(a, b), call(Operation.INT4_SQUARE_BOTH, nibbles(a), nibbles(b)));
    }
  }

  @Test
  void planesAreLowestBitFirst() {
    for (int dims = 1; dims <= 300; dims++) {
      int plane = (dims + 7) / 8;
      byte[] query = numbers(dims, 16);
      byte[] planes = new byte[4 * plane];
      OptimizedScalarQuantizer.transposeHalfByte(query, planes);

      byte[] bits = numbers(dims, 2);
      byte[] packedBits = new byte[plane];
      OptimizedScalarQuantizer.packAsBinary(bits, packedBits);
      assertEquals(dot(query, bits), call(Operation.INT4_BIT, planes, packedBits));

      byte[] dibits = numbers(dims, 4);
      byte[] packedDibits = new byte[2 * plane];
      OptimizedScalarQuantizer.transposeDibit(dibits, packedDibits);
      assertEquals(dot(query, dibits), call(Operation.INT4_DIBIT, planes, packedDibits));
    }
  }
}
