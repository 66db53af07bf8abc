// Dot product of unsigned bytes.
package io.lanewise.jmh;

import io.lanewise.dropin.LuceneSymbols;
import java.lang.invoke.MethodHandle;
import org.apache.lucene.util.VectorUtil;

/** Dot product of unsigned bytes. */
public class Uint8Dot extends BytesBenchmark {
  private static final MethodHandle HANDLE = LuceneSymbols.handle("uint8DotProduct");

  @Override
  long byLucene(byte[] a, byte[] b) {
    return VectorUtil.uint8DotProduct(a, b);
  }

  @Override
  MethodHandle handle() {
    return HANDLE;
  }
}
