// What the benchmarks over byte vectors share: operands in their three places, and the four ways to
// an answer.
package io.lanewise.jmh;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * One operation of two byte vectors that stay in the L1 cache. A subclass names Lucene's function
 * and the library's; it is the only one loaded in its process, so the compiler sees through both.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public abstract class BytesBenchmark {
  /** Numbers in a vector. */
  @Param({"256", "768", "1024", "4096"})
  public int dims;

  private byte[] a;
  private byte[] b;
  private MemorySegment nativeA;
  private MemorySegment nativeB;
  private MemorySegment copyA;
  private MemorySegment copyB;

  /** Bytes of the first operand. */
  int bytesOfA() {
    return dims;
  }

  /** Bytes of the second operand. */
  int bytesOfB() {
    return dims;
  }

  /** The bits that a byte of the first operand may have set. */
  int mask() {
    return 0xff;
  }

  abstract long byLucene(byte[] a, byte[] b);

  /** (first operand, second operand, bytes of the first) to int. */
  abstract MethodHandle handle();

  /** Makes the operands, and stops where the four ways do not give one answer. */
  @Setup(Level.Trial)
  public void makeOperands() {
    SplittableRandom random = new SplittableRandom(6);
    a = new byte[bytesOfA()];
    b = new byte[bytesOfB()];
    random.nextBytes(a);
    random.nextBytes(b);
    for (int i = 0; i < a.length; i++) a[i] &= (byte) mask();
    // Two operands of one size are of one kind.
    if (a.length == b.length) for (int i = 0; i < b.length; i++) b[i] &= (byte) mask();
    Arena arena = Arena.global();
    nativeA = arena.allocate(a.length, 64).copyFrom(MemorySegment.ofArray(a));
    nativeB = arena.allocate(b.length, 64).copyFrom(MemorySegment.ofArray(b));
    copyA = arena.allocate(a.length, 64);
    copyB = arena.allocate(b.length, 64);
    long expected = lucene();
    if (heap() != expected || offHeap() != expected || copyIn() != expected)
      throw new IllegalStateException("the library and Lucene do not agree");
  }

  /** Lucene's own code, on the arrays. */
  @Benchmark
  public long lucene() {
    return byLucene(a, b);
  }

  /** The library, on the same arrays. */
  @Benchmark
  public long heap() {
    return call(MemorySegment.ofArray(a), MemorySegment.ofArray(b));
  }

  /** The library, on native memory, as from a mapped file. */
  @Benchmark
  public long offHeap() {
    return call(nativeA, nativeB);
  }

  /**
   * The library, on native memory that the arrays are first copied to: what critical access saves.
   */
  @Benchmark
  public long copyIn() {
    MemorySegment.copy(a, 0, copyA, ValueLayout.JAVA_BYTE, 0, a.length);
    MemorySegment.copy(b, 0, copyB, ValueLayout.JAVA_BYTE, 0, b.length);
    return call(copyA, copyB);
  }

  private long call(MemorySegment first, MemorySegment second) {
    try {
      return (int) handle().invokeExact(first, second, (int) first.byteSize());
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }
}
