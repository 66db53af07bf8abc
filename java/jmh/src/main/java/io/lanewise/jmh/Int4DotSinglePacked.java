// Dot product of half bytes, the second vector's packed two a byte.
package io.lanewise.jmh;

import io.lanewise.dropin.LuceneSymbols;
import java.lang.invoke.MethodHandle;
import org.apache.lucene.util.VectorUtil;

/** Dot product of half bytes, the second vector's packed two a byte. */
public class Int4DotSinglePacked extends BytesBenchmark {
  private static final MethodHandle HANDLE = LuceneSymbols.handle("int4DotProductSinglePacked");

  @Override
  int bytesOfB() {
    return dims / 2;
  }

  @Override
  int mask() {
    return 0x0f;
  }

  @Override
  long byLucene(byte[] a, byte[] b) {
    return VectorUtil.int4DotProductSinglePacked(a, b);
  }

  @Override
  MethodHandle handle() {
    return HANDLE;
  }
}
