// Dot product of signed bytes.
package io.lanewise.jmh;

import io.lanewise.dropin.LuceneSymbols;
import java.lang.invoke.MethodHandle;
import org.apache.lucene.util.VectorUtil;

/** Dot product of signed bytes. */
public class Int8Dot extends BytesBenchmark {
  private static final MethodHandle HANDLE = LuceneSymbols.handle("dotProduct");

  @Override
  long byLucene(byte[] a, byte[] b) {
    return VectorUtil.dotProduct(a, b);
  }

  @Override
  MethodHandle handle() {
    return HANDLE;
  }
}
