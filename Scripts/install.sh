#!/usr/bin/env bash
# Builds (`build`), installs (`install`), and uninstalls (`uninstall`) the command and the library. The Makefile documents the targets.
#
# PREFIX (default: /usr/local) is the installation prefix, LIBDIR (default: $PREFIX/lib) the directory of libraries. DESTDIR is a staging
# directory, which precedes both.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
destination=${DESTDIR:-}
# valet.pc and the programs that read it split paths at these characters.
for path in "$prefix" "$libdir"; do
    case $path in
        *[[:space:]\&\|\\]*) echo "PREFIX and LIBDIR must not contain spaces, &, | or \\: $path" >&2; exit 2 ;;
        /*) ;;
        *) echo "PREFIX and LIBDIR must begin with /: $path" >&2; exit 2 ;;
    esac
done
case $destination in
    '' | /*) ;;
    *) echo "DESTDIR must begin with /: $destination" >&2; exit 2 ;;
esac
version=$(sed -n 's/^package let projectVersion.*"\([0-9][^"]*\)".*/\1/p' Sources/Valet/ProjectVersion.swift)
# The number is increased when a change of the library breaks existing programs.
soname=libvalet.so.0
built=$PWD/.build/install
# One build for the command and the library, both with a static Swift runtime.
swift_options=(-c release --scratch-path "$built" -Xswiftc -static-stdlib -Xswiftc -use-ld=lld -Xlinker -s)

# Only the installation uses sudo, and only if the directory is not writable. Build products stay the user's.
place=$destination$prefix
while [ ! -e "$place" ]; do place=$(dirname "$place"); done
as_owner=()
if [ ! -w "$place" ] && [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null 2>&1; then as_owner=(sudo); fi
require_writable() {
    if [ -w "$place" ] || [ ${#as_owner[@]} -gt 0 ]; then return; fi
    echo "$place is not writable. Run this command as root, or choose another directory: make $1 PREFIX=\$HOME/.local" >&2
    exit 1
}

build() {
    swift build "${swift_options[@]}" --product valet
    # nodelete: the Swift runtime registers destructors for threads, so the library must stay loaded.
    swift build "${swift_options[@]}" --product ValetC \
        -Xlinker --version-script="$PWD/Scripts/libvalet.map" -Xlinker -soname="$soname" -Xlinker -z -Xlinker nodelete
    sed -e "s|@PREFIX@|$prefix|" -e "s|@LIBDIR@|$libdir|" -e "s|@VERSION@|$version|" Scripts/valet.pc.in >"$built/valet.pc"
    sed -e "s|@PREFIX@|$prefix|" Scripts/valet-sync.service.in >"$built/valet-sync.service"
    # In the build of the tests: the plugin builds all targets, and some need the toolchain's Testing, which has no static form.
    Scripts/man.sh
    Scripts/completions.sh "${swift_options[@]}"
}

# The installed files: mode, source, destination.
files() {
    local bin library page
    bin=$(swift build "${swift_options[@]}" --show-bin-path)
    library=$libdir/libvalet.so.$version
    printf '%s\t%s\t%s\n' 755 "$bin/valet" "$prefix/bin/valet"
    printf '%s\t%s\t%s\n' 644 "$bin/libValetC.so" "$library"
    printf '%s\t%s\t%s\n' 644 "Sources/CValet/include/valet.h" "$prefix/include/valet.h"
    printf '%s\t%s\t%s\n' 644 "$built/valet.pc" "$libdir/pkgconfig/valet.pc"
    # systemd looks for units of users in the share directories of /usr, of /usr/local, and of ~/.local.
    printf '%s\t%s\t%s\n' 644 "$built/valet-sync.service" "$prefix/share/systemd/user/valet-sync.service"
    printf '%s\t%s\t%s\n' 644 ".build/completions/valet.bash" "$prefix/share/bash-completion/completions/valet"
    printf '%s\t%s\t%s\n' 644 ".build/completions/_valet" "$prefix/share/zsh/site-functions/_valet"
    printf '%s\t%s\t%s\n' 644 ".build/completions/valet.fish" "$prefix/share/fish/vendor_completions.d/valet.fish"
    for page in .build/man/*.1; do
        printf '%s\t%s\t%s\n' 644 "$page" "$prefix/share/man/man1/${page##*/}"
    done
}

install_all() {
    local mode source target
    files | while IFS=$'\t' read -r mode source target; do "${as_owner[@]}" install -D -m "$mode" "$source" "$destination$target"; done
    "${as_owner[@]}" ln -sf "libvalet.so.$version" "$destination$libdir/$soname"
    "${as_owner[@]}" ln -sf "$soname" "$destination$libdir/libvalet.so"
    echo "Installed valet $version in $destination$prefix."
    refresh_libraries
}

# Needs no build products, and removes the files of older versions too.
uninstall_all() {
    "${as_owner[@]}" rm -f "$destination$prefix/bin/valet" "$destination$prefix/include/valet.h" "$destination$libdir/pkgconfig/valet.pc" \
        "$destination$libdir"/libvalet.so "$destination$libdir"/libvalet.so.* \
        "$destination$prefix/share/systemd/user/valet-sync.service" \
        "$destination$prefix/share/man/man1/valet.1" "$destination$prefix"/share/man/man1/valet.*.1 \
        "$destination$prefix/share/bash-completion/completions/valet" "$destination$prefix/share/zsh/site-functions/_valet" \
        "$destination$prefix/share/fish/vendor_completions.d/valet.fish"
    echo "Removed valet from $destination$prefix."
    refresh_libraries
}

# Updates the cache of the dynamic linker, which only root can write. Not needed for a staging directory.
refresh_libraries() {
    if [ -n "$destination" ] || ! [ -x /sbin/ldconfig ]; then return; fi
    if [ "$(id -u)" -eq 0 ] || [ ${#as_owner[@]} -gt 0 ]; then "${as_owner[@]}" /sbin/ldconfig; fi
}

case ${1:-} in
    build) build ;;
    install)
        require_writable install
        build
        install_all
        ;;
    uninstall)
        require_writable uninstall
        uninstall_all
        ;;
    *) echo "Usage: Scripts/install.sh build|install|uninstall" >&2; exit 2 ;;
esac
