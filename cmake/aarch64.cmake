# Cross build for 64-bit ARM on a Debian machine. Libraries come from Debian's arm64 architecture, beside the machine's
# own, in /usr/lib/aarch64-linux-gnu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

# The tests run through this. No -L /usr/aarch64-linux-gnu: the loader there is the cross toolchain's, and together with
# the C library of Debian's arm64 architecture, of another build, it hangs in pthread_create.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)

set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# DLPack is headers alone, so the machine's own package serves; CMake would look for it among arm64's.
file(GLOB dlpack_DIR /usr/lib/*/cmake/dlpack)
