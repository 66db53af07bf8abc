// What is timed, one enum constant a benchmark.
package io.lanewise.jmh;

/** A benchmark. */
enum Subject {
  INT8_DOT(Int8Dot.class, "dot_i8", "int8 dot", true, false),
  UINT8_DOT(Uint8Dot.class, "dot_u8", "uint8 dot", false, false),
  INT8_SQUARE(Int8Square.class, "l2_i8", "int8 squared distance", false, false),
  // No kernel of its own serves it, so it goes by Lucene's name.
  INT4_DOT(Int4Dot.class, "int4DotProduct", "int4 dot, one a byte", false, false),
  INT4_DOT_SINGLE_PACKED(
      Int4DotSinglePacked.class, "dot_i8u4", "int4 dot, single packed", false, false),
  HAMMING(Hamming.class, "hamming_bits", "Hamming, bits", false, true),
  FLOAT32_DOT(Float32Dot.class, "dot_f32", "float dot", false, true);

  final Class<?> code;

  /** The name in the file of figures: the kernel's. */
  final String kernel;

  final String title;

  /** Whether the brief run measures it in every size and way too. */
  final boolean whole;

  /** Whether it is called by the name in the kernel library, and not through the drop-in. */
  final boolean isKernel;

  Subject(Class<?> code, String kernel, String title, boolean whole, boolean isKernel) {
    this.code = code;
    this.kernel = kernel;
    this.title = title;
    this.whole = whole;
    this.isKernel = isKernel;
  }
}
