// The functions of libdotProduct, found as Lucene's native vector interface finds them
// (apache/lucene pull request
// 15508, NativeVectorUtilSupport): by name, as critical downcalls that take heap arrays without
// copying.
package io.lanewise.dropin;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What {@code libdotProduct} exports, and handles to call it by. Loading this class loads the
 * library from {@code java.library.path}; an {@link ExceptionInInitializerError} says so where it
 * is missing.
 */
public final class LuceneSymbols {
  /** (first operand, second operand, size of the first in bytes) to int. */
  public static final FunctionDescriptor TO_INT =
      FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT);

  /** (first operand, second operand, size of the first in bytes) to long. */
  public static final FunctionDescriptor TO_LONG =
      FunctionDescriptor.of(JAVA_LONG, ADDRESS, ADDRESS, JAVA_INT);

  /** (unpacked query, packed rows, stride, ordinals, count, bytes of a packed row, int results). */
  public static final FunctionDescriptor BULK =
      FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT, ADDRESS);

  /** Every exported name, with the descriptor that Lucene links it by. */
  public static final Map<String, FunctionDescriptor> EXPORTED =
      Map.ofEntries(
          Map.entry("dotProduct", TO_INT),
          Map.entry("dot8s", TO_INT),
          Map.entry("squareDistance", TO_INT),
          Map.entry("uint8DotProduct", TO_INT),
          Map.entry("uint8SquareDistance", TO_INT),
          Map.entry("int4DotProduct", TO_INT),
          Map.entry("int4SquareDistance", TO_INT),
          Map.entry("int4DotProductSinglePacked", TO_INT),
          Map.entry("int4SquareDistanceSinglePacked", TO_INT),
          Map.entry("int4DotProductBothPacked", TO_INT),
          Map.entry("int4SquareDistanceBothPacked", TO_INT),
          Map.entry("int4BitDotProduct", TO_LONG),
          Map.entry("int4DibitDotProduct", TO_LONG),
          Map.entry("int4DotProductSinglePackedBulk", BULK));

  /**
   * Names that Lucene looks up too and that must stay unresolved, so that its own code runs: the
   * result type of {@code cosine} differs between revisions, the float ones would be slower by the
   * price of the call, and the others are called through a generic path that costs more than they
   * do.
   */
  public static final List<String> LEFT_TO_LUCENE =
      List.of(
          "cosine",
          "dotProductFloat",
          "squareDistanceFloat",
          "cosineFloat",
          "minMaxScalarQuantize",
          "recalculateScalarQuantizationOffset",
          "filterByScore",
          "l2normalize",
          "expand8",
          "findNextGEQ");

  private static final Linker LINKER = Linker.nativeLinker();
  private static final SymbolLookup LOOKUP;

  static {
    try {
      System.loadLibrary("dotProduct");
    } catch (UnsatisfiedLinkError e) {
      throw new IllegalStateException(
          System.mapLibraryName("dotProduct")
              + " is not on java.library.path ("
              + System.getProperty("java.library.path")
              + "): build it and pass its folder, as docs/lucene.md says",
          e);
    }
    SymbolLookup loader = SymbolLookup.loaderLookup();
    LOOKUP = name -> loader.find(name).or(() -> LINKER.defaultLookup().find(name));
  }

  private LuceneSymbols() {}

  /** Whether Lucene would find a function of this name. */
  public static boolean resolves(String name) {
    return LOOKUP.find(name).isPresent();
  }

  /** A critical downcall to the function of this name; empty where there is none. */
  public static Optional<MethodHandle> find(String name, FunctionDescriptor descriptor) {
    return LOOKUP
        .find(name)
        .map(at -> LINKER.downcallHandle(at, descriptor, Linker.Option.critical(true)));
  }

  /**
   * A critical downcall to an exported function.
   *
   * @throws IllegalStateException if the library does not export it
   */
  public static MethodHandle handle(String name) {
    FunctionDescriptor descriptor = EXPORTED.get(name);
    if (descriptor == null) throw new IllegalArgumentException(name + " is not a name Lucene uses");
    return find(name, descriptor)
        .orElseThrow(() -> new IllegalStateException("libdotProduct does not export " + name));
  }
}
