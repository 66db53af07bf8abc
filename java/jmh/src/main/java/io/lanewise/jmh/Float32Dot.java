// Dot product of floats, for reference: Lucene's own code is as fast, so the drop-in leaves it to
// Lucene.
package io.lanewise.jmh;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.apache.lucene.util.VectorUtil;
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
 * Dot product of floats, by the kernel library itself. The four ways are those of {@link
 * BytesBenchmark}.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Float32Dot {
  private static final MethodHandle HANDLE = KernelLibrary.handle("lw_dot_f32", JAVA_FLOAT);

  /** Numbers in a vector. */
  @Param({"256", "768", "1024", "4096"})
  public int dims;

  private float[] a;
  private float[] b;
  private MemorySegment nativeA;
  private MemorySegment nativeB;
  private MemorySegment copyA;
  private MemorySegment copyB;

  /** Makes the operands, and stops where the four ways do not give about one answer. */
  @Setup(Level.Trial)
  public void makeOperands() {
    SplittableRandom random = new SplittableRandom(6);
    a = new float[dims];
    b = new float[dims];
    for (int i = 0; i < dims; i++) {
      a[i] = (float) random.nextDouble(-1, 1);
      b[i] = (float) random.nextDouble(-1, 1);
    }
    Arena arena = Arena.global();
    nativeA = arena.allocate(4L * dims, 64).copyFrom(MemorySegment.ofArray(a));
    nativeB = arena.allocate(4L * dims, 64).copyFrom(MemorySegment.ofArray(b));
    copyA = arena.allocate(4L * dims, 64);
    copyB = arena.allocate(4L * dims, 64);
    for (float result : new float[] {heap(), offHeap(), copyIn()})
      if (Math.abs(result - lucene()) > 1e-3f)
        throw new IllegalStateException("the library and Lucene do not agree");
  }

  @Benchmark
  public float lucene() {
    return VectorUtil.dotProduct(a, b);
  }

  @Benchmark
  public float heap() {
    return call(MemorySegment.ofArray(a), MemorySegment.ofArray(b));
  }

  @Benchmark
  public float offHeap() {
    return call(nativeA, nativeB);
  }

  @Benchmark
  public float copyIn() {
    MemorySegment.copy(a, 0, copyA, JAVA_FLOAT, 0, dims);
    MemorySegment.copy(b, 0, copyB, JAVA_FLOAT, 0, dims);
    return call(copyA, copyB);
  }

  private float call(MemorySegment first, MemorySegment second) {
    try {
      return (float) HANDLE.invokeExact(first, second, dims);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }
}
