// The kernel library under its own names, for what Lucene's native interface has no name for.
package io.lanewise.jmh;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.File;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;

/** {@code liblanewise_kernels}, looked for on {@code java.library.path}. */
final class KernelLibrary {
  private KernelLibrary() {}

  /** Where the library is; empty where it is not. */
  private static Optional<Path> path() {
    String name = System.mapLibraryName("lanewise_kernels");
    return Arrays.stream(System.getProperty("java.library.path", "").split(File.pathSeparator))
        .map(folder -> Path.of(folder, name))
        .filter(Files::exists)
        .findFirst();
  }

  /** Whether the library is there and has {@code kernel}. */
  static boolean exports(String kernel) {
    return path().isPresent() && find(path().get(), kernel).isPresent();
  }

  private static Optional<MemorySegment> find(Path path, String kernel) {
    return SymbolLookup.libraryLookup(path, Arena.global()).find(kernel);
  }

  /**
   * A critical downcall to a one-to-one kernel: (first operand, second operand, int count of
   * elements) to {@code result}.
   *
   * @throws IllegalStateException without the library or the kernel
   */
  static MethodHandle handle(String kernel, MemoryLayout result) {
    Path path =
        path().orElseThrow(() -> new IllegalStateException("liblanewise_kernels is not there"));
    MemorySegment at =
        find(path, kernel).orElseThrow(() -> new IllegalStateException(path + " has no " + kernel));
    FunctionDescriptor descriptor = FunctionDescriptor.of(result, ADDRESS, ADDRESS, JAVA_LONG);
    MethodHandle handle =
        Linker.nativeLinker().downcallHandle(at, descriptor, Linker.Option.critical(true));
    MethodType type = handle.type();
    return handle.asType(type.changeParameterType(2, int.class));
  }
}
