// Dot product of half bytes, one a byte.
package io.lanewise.jmh;

import io.lanewise.dropin.LuceneSymbols;
import java.lang.invoke.MethodHandle;
import org.apache.lucene.util.VectorUtil;

/** Dot product of half bytes, one a byte. */
public class Int4Dot extends BytesBenchmark {
  private static final MethodHandle HANDLE = LuceneSymbols.handle("int4DotProduct");

  @Override
  int mask() {
    return 0x0f;
  }

  @Override
  long byLucene(byte[] a, byte[] b) {
    return VectorUtil.int4DotProduct(a, b);
  }

  @Override
  MethodHandle handle() {
    return HANDLE;
  }
}
