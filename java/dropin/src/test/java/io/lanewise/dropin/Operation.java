// The operations as the tests see them: shapes and ranges of the operands, Lucene's function, the
// library's.
package io.lanewise.dropin;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.random.RandomGenerator;
import org.apache.lucene.util.VectorUtil;

/**
 * One exported function of two operands. Of size {@code n}, they have {@code a * n} and {@code b *
 * n} bytes.
 */
enum Operation {
  DOT("dotProduct", 1, 0xff, 1, 0xff, VectorUtil::dotProduct),
  DOT_BY_OLD_NAME("dot8s", 1, 0xff, 1, 0xff, VectorUtil::dotProduct),
  SQUARE("squareDistance", 1, 0xff, 1, 0xff, VectorUtil::squareDistance),
  UINT8_DOT("uint8DotProduct", 1, 0xff, 1, 0xff, VectorUtil::uint8DotProduct),
  UINT8_SQUARE("uint8SquareDistance", 1, 0xff, 1, 0xff, VectorUtil::uint8SquareDistance),
  INT4_DOT("int4DotProduct", 1, 0x0f, 1, 0x0f, VectorUtil::int4DotProduct),
  INT4_SQUARE("int4SquareDistance", 1, 0x0f, 1, 0x0f, VectorUtil::int4SquareDistance),
  INT4_DOT_SINGLE(
      "int4DotProductSinglePacked", 2, 0x0f, 1, 0xff, VectorUtil::int4DotProductSinglePacked),
  INT4_SQUARE_SINGLE(
      "int4SquareDistanceSinglePacked",
      2,
      0x0f,
      1,
      0xff,
      VectorUtil::int4SquareDistanceSinglePacked),
  INT4_DOT_BOTH("int4DotProductBothPacked", 1, 0xff, 1, 0xff, VectorUtil::int4DotProductBothPacked),
  INT4_SQUARE_BOTH(
      "int4SquareDistanceBothPacked", 1, 0xff, 1, 0xff, VectorUtil::int4SquareDistanceBothPacked),
  INT4_BIT("int4BitDotProduct", 4, 0xff, 1, 0xff, VectorUtil::int4BitDotProduct),
  INT4_DIBIT("int4DibitDotProduct", 4, 0xff, 2, 0xff, VectorUtil::int4DibitDotProduct);

  /** Lucene's function; those that return an int widen. */
  interface Reference {
    long of(byte[] a, byte[] b);
  }

  final String symbol;
  final int a;
  final int b;
  private final int aMask;
  private final int bMask;
  private final Reference lucene;
  private final boolean returnsLong;
  private final MethodHandle handle;

  Operation(String symbol, int a, int aMask, int b, int bMask, Reference lucene) {
    this.symbol = symbol;
    this.a = a;
    this.b = b;
    this.aMask = aMask;
    this.bMask = bMask;
    this.lucene = lucene;
    FunctionDescriptor descriptor = LuceneSymbols.EXPORTED.get(symbol);
    this.returnsLong = descriptor.equals(LuceneSymbols.TO_LONG);
    this.handle = LuceneSymbols.handle(symbol);
  }

  byte[] randomA(int n, RandomGenerator random) {
    return random(a * n, aMask, random);
  }

  byte[] randomB(int n, RandomGenerator random) {
    return random(b * n, bMask, random);
  }

  /** Every byte of the first operand is {@code value}, cut to its range. */
  byte[] filledA(int n, int value) {
    return filled(a * n, aMask & value);
  }

  byte[] filledB(int n, int value) {
    return filled(b * n, bMask & value);
  }

  long byLucene(byte[] first, byte[] second) {
    return lucene.of(first, second);
  }

  /** Calls the library as Lucene does: the size is the first operand's, in bytes. */
  long byLibrary(MemorySegment first, MemorySegment second) {
    return byLibrary(first, second, (int) first.byteSize());
  }

  long byLibrary(MemorySegment first, MemorySegment second, int bytes) {
    try {
      return returnsLong
          ? (long) handle.invokeExact(first, second, bytes)
          : (int) handle.invokeExact(first, second, bytes);
    } catch (Throwable e) {
      throw new AssertionError(symbol, e);
    }
  }

  private static byte[] random(int length, int mask, RandomGenerator random) {
    byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    for (int i = 0; i < length; i++) bytes[i] &= (byte) mask;
    return bytes;
  }

  private static byte[] filled(int length, int value) {
    byte[] bytes = new byte[length];
    java.util.Arrays.fill(bytes, (byte) value);
    return bytes;
  }
}
