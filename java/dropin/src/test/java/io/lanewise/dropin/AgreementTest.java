// Every exported function gives exactly what Lucene computes itself: all sizes, all places of the
// operands, extremes.
package io.lanewise.dropin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.apache.lucene.util.VectorUtil;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class AgreementTest {
  /**
   * Where an operand lies. A misaligned one starts {@code 1 + salt % 63} bytes past a multiple of
   * 64.
   */
  private enum Place {
    HEAP,
    HEAP_SLICE,
    NATIVE,
    NATIVE_MISALIGNED;

    MemorySegment put(byte[] bytes, int salt, Arena arena) {
      int shift = 1 + salt % 63;
      return switch (this) {
        case HEAP -> MemorySegment.ofArray(bytes);
        case HEAP_SLICE -> {
          byte[] longer = new byte[bytes.length + shift + 64];
          System.arraycopy(bytes, 0, longer, shift, bytes.length);
          yield MemorySegment.ofArray(longer).asSlice(shift, bytes.length);
        }
        case NATIVE -> arena.allocate(bytes.length, 64).copyFrom(MemorySegment.ofArray(bytes));
        case NATIVE_MISALIGNED ->
            arena
                .allocate(bytes.length + shift, 64)
                .asSlice(shift)
                .copyFrom(MemorySegment.ofArray(bytes));
      };
    }
  }

  private static int[] sizes() {
    IntStream typical = IntStream.of(768, 1000, 1024, 1536, 2048, 4096);
    return IntStream.concat(IntStream.rangeClosed(0, 600), typical).toArray();
  }

  @Test
  void luceneRunsTheCodeThatThisRunIsAbout() throws ReflectiveOperationException {
    var implementation = VectorUtil.class.getDeclaredField("IMPL");
    implementation.setAccessible(true);
    String name = implementation.get(null).getClass().getSimpleName();
    assertEquals(System.getProperty("lanewise.expect"), name);
  }

  @ParameterizedTest
  @EnumSource(Operation.class)
  void randomOperandsAnywhere(Operation operation) {
    SplittableRandom random = new SplittableRandom(1);
    for (int n : sizes()) {
      byte[] a = operation.randomA(n, random);
      byte[] b = operation.randomB(n, random);
      long expected = operation.byLucene(a, b);
      try (Arena arena = Arena.ofConfined()) {
        for (Place first : Place.values())
          for (Place second : Place.values())
            assertEquals(
                expected,
                operation.byLibrary(first.put(a, n, arena), second.put(b, 7 * n + 5, arena)),
                () -> operation.symbol + " of size " + a.length + ", " + first + ", " + second);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(Operation.class)
  void extremes(Operation operation) {
    int[] bytes = {0x00, 0x01, 0x0f, 0x7f, 0x80, 0xf0, 0xff};
    for (int n : new int[] {1, 31, 64, 127, 128, 600, 1024, 4096})
      for (int x : bytes)
        for (int y : bytes) {
          byte[] a = operation.filledA(n, x);
          byte[] b = operation.filledB(n, y);
          assertEquals(
              operation.byLucene(a, b),
              operation.byLibrary(MemorySegment.ofArray(a), MemorySegment.ofArray(b)),
              () -> operation.symbol + " of " + a.length + " bytes " + x + " with " + y);
        }
  }

  @ParameterizedTest
  @EnumSource(Operation.class)
  void nothingBehindTheOperandsCounts(Operation operation) {
    SplittableRandom random = new SplittableRandom(2);
    for (int n = 0; n < 200; n++) {
      byte[] a = operation.randomA(n + 64, random);
      byte[] b = operation.randomB(n + 64, random);
      byte[] shortA = java.util.Arrays.copyOf(a, operation.a * n);
      byte[] shortB = java.util.Arrays.copyOf(b, operation.b * n);
      long expected = operation.byLucene(shortA, shortB);
      MemorySegment first = MemorySegment.ofArray(a).asSlice(0, shortA.length);
      MemorySegment second = MemorySegment.ofArray(b).asSlice(0, shortB.length);
      assertEquals(expected, operation.byLibrary(first, second), operation.symbol + " " + n);
    }
  }

  @ParameterizedTest
  @EnumSource(Operation.class)
  void negativeAndEmptySizesGiveZeroAndReadNothing(Operation operation) {
    for (int bytes : new int[] {0, -1, -64, Integer.MIN_VALUE})
      assertEquals(0, operation.byLibrary(MemorySegment.NULL, MemorySegment.NULL, bytes));
  }

  @ParameterizedTest
  @EnumSource(Operation.class)
  void sizesThatAreNoMultipleOfTheirUnitAreCutDown(Operation operation) {
    byte[] a = operation.filledA(9, 0xff);
    byte[] b = operation.filledB(9, 0xff);
    for (int extra = 0; extra < operation.a; extra++) {
      byte[] wholeA = java.util.Arrays.copyOf(a, 8 * operation.a);
      byte[] wholeB = java.util.Arrays.copyOf(b, 8 * operation.b);
      assertEquals(
          operation.byLucene(wholeA, wholeB),
          operation.byLibrary(
              MemorySegment.ofArray(a), MemorySegment.ofArray(b), 8 * operation.a + extra));
    }
  }
}
