// Bits that differ; outside of Lucene's native interface, so from the kernel library itself.
package io.lanewise.jmh;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.invoke.MethodHandle;
import org.apache.lucene.util.VectorUtil;

/** Bits that differ; outside of Lucene's native interface, so from the kernel library itself. */
public class Hamming extends BytesBenchmark {
  private static final MethodHandle HANDLE = KernelLibrary.handle("lw_hamming_bits", JAVA_INT);

  @Override
  int bytesOfA() {
    return dims / 8;
  }

  @Override
  int bytesOfB() {
    return dims / 8;
  }

  @Override
  long byLucene(byte[] a, byte[] b) {
    return VectorUtil.xorBitCount(a, b);
  }

  @Override
  MethodHandle handle() {
    return HANDLE;
  }
}
