// Squared distance of signed bytes.
package io.lanewise.jmh;

import io.lanewise.dropin.LuceneSymbols;
import java.lang.invoke.MethodHandle;
import org.apache.lucene.util.VectorUtil;

/** Squared distance of signed bytes. */
public class Int8Square extends BytesBenchmark {
  private static final MethodHandle HANDLE = LuceneSymbols.handle("squareDistance");

  @Override
  long byLucene(byte[] a, byte[] b) {
    return VectorUtil.squareDistance(a, b);
  }

  @Override
  MethodHandle handle() {
    return HANDLE;
  }
}
