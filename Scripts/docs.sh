#!/usr/bin/env bash
# Builds the documentation of all products as one static website in .build/docs, with the `docc` of the toolchain. Warnings are errors, so
# every link between its pages resolves.
#
#     Scripts/docs.sh
#     python3 -m http.server --bind 127.0.0.1 --directory .build/docs    # then open http://127.0.0.1:8000/documentation
#
# HOSTING_BASE_PATH is the path of the site on its server, if it is not the root.
set -euo pipefail
cd "$(dirname "$0")/.."

. Scripts/build-options.sh
# The build of the tests with all traits, because ValetConfiguration and KeychainSyncEtcd have no symbols without their traits.
scratch=.build/with-traits
build_options[1]=$scratch
build_options+=(--enable-all-traits)
work=.build/docs-work
site=.build/docs
modules=(KeychainServices KeychainSync KeychainSyncEtcd Valet Locksmith ValetConfiguration KeychainTesting KeychainTestingTraits)

echo "Building the modules; without changes this takes a few seconds."
mkdir -p "$scratch"
for target in Locksmith KeychainSyncEtcd ValetConfiguration KeychainTestingTraits; do
    if ! swift build "${build_options[@]}" --target "$target" >"$scratch/docs-build.log" 2>&1; then
        grep -vE '^\[[0-9]+/[0-9]+\]' "$scratch/docs-build.log" | head -n 100
        exit 1
    fi
done
built=$(swift build "${build_options[@]}" --show-bin-path 2>/dev/null)

rm -rf "$work" "$site"
mkdir -p "$work"
module_maps=()
while IFS= read -r map; do
    module_maps+=(-Xcc "-fmodule-map-file=$map")
done < <(
    find "$built/" -maxdepth 2 -path '*.build/module.modulemap'
    find Sources "$scratch/checkouts" -path '*/include/module.modulemap'
    echo Sources/CSQLite/module.modulemap
)
target=$(swiftc -print-target-info | sed -n 's/.*"triple": "\(.*\)",/\1/p' | head -n 1)

# Writes the public symbols of a module.
extract() {
    local module=$1 options=()
    # KeychainServices re-exports SecurityAPI, which users never import.
    [ "$module" != KeychainServices ] || options=(-experimental-allowed-reexported-modules=SecurityAPI)
    mkdir -p "$work/$module.symbols"
    swift-symbolgraph-extract -module-name "$module" -target "$target" -I "$built/Modules" "${module_maps[@]}" \
        -module-cache-path "$work/modules" -output-dir "$work/$module.symbols" \
        -minimum-access-level public -skip-synthesized-members -emit-extension-block-symbols "${options[@]}"
}
for module in "${modules[@]}"; do extract "$module"; done
mkdir -p "$work/ValetC.symbols" "$work/ValetCLI.symbols"
clang -x c-header -extract-api --product-name=ValetC -ISources/CValet/include Sources/CValet/include/valet.h \
    -o "$work/ValetC.symbols/CValet.symbols.json"

# Makes a link of each article of another module that a catalog names. `docc` has links between archives only in one direction.
link_articles() {
    python3 - "$1" "${HOSTING_BASE_PATH:-}" <<'PYTHON'
import pathlib, re, sys

catalog, base = pathlib.Path(sys.argv[1]), sys.argv[2].strip("/")

def link(match):
    title, command, module = " ".join(match[2].split()), match[3] or "", match[4]
    name = "ValetCLI" if module == "valet" else module
    article = next(
        path for path in pathlib.Path("Sources", name, name + ".docc").glob("*.md") if path.read_text().startswith(f"# {title}\n"))
    # The first page of the command.
    page = "/" + article.stem.lower() if article.stem != "The-Command" else ""
    url = ("/" + base if base else "") + f"/documentation/{name.lower()}{page}"
    return f"{match[1]}he article [{title}]({url}) of {command}`{module}`"

for path in catalog.glob("*.md"):
    path.write_text(re.sub(r'\b([Tt])he\s+article\s+"([^"]+)"\s+of\s+(the\s+command\s+)?`(\w+)`', link, path.read_text()))
PYTHON
}

# Puts the charts that articles show from Benchmarks/Results into the catalog, outside of which `docc` finds no pictures.
copy_charts() {
    local charts=../../../Benchmarks/Results/ chart
    for chart in $(grep -oh "]($charts[a-z-]*\.svg)" "$1"/*.md | sed 's|.*/||; s|)||' | sort -u); do
        cp "Benchmarks/Results/$chart" "$1/"
    done
    sed -i "s|]($charts|](|" "$1"/*.md
}

# Converts a catalog and symbols to an archive.
convert() {
    local module=$1 options=()
    cp -R "Sources/$module/$module.docc" "$work/"
    case $module in
        # The comments of the header do not repeat what a handle and a length are.
        ValetC) options=(--disable-parameters-and-returns-validation) ;;
        # A command has no module, so an article is the first page. The directive would be visible where the article is read on the web.
        ValetCLI)
            mv "$work/ValetCLI.docc/The-Command.md" "$work/ValetCLI.docc/ValetCLI.md"
            sed -i '1a\\n@Metadata {\n    @TechnologyRoot\n}' "$work/ValetCLI.docc/ValetCLI.md"
            ;;
    esac
    copy_charts "$work/$module.docc"
    link_articles "$work/$module.docc"
    [ -z "${HOSTING_BASE_PATH:-}" ] || options+=(--hosting-base-path "$HOSTING_BASE_PATH")
    docc convert "$work/$module.docc" --additional-symbol-graph-dir "$work/$module.symbols" --output-path "$work/$module.doccarchive" \
        --fallback-display-name "$module" --fallback-bundle-identifier "$module" --warnings-as-errors "${options[@]}" 2>&1 | sed '/^$/d'
}
archives=()
for module in "${modules[@]}" ValetC ValetCLI; do
    convert "$module"
    archives+=("$work/$module.doccarchive")
done

docc merge "${archives[@]}" --output-path "$site" \
    --synthesized-landing-page-name "Keychain for Swift" --synthesized-landing-page-kind Package \
    --synthesized-landing-page-topics-style list
# `docc` does not check the links from link_articles.
python3 - "$site" "${HOSTING_BASE_PATH:-}" <<'PYTHON'
import json, pathlib, sys

site, base = pathlib.Path(sys.argv[1]), sys.argv[2].strip("/")
prefix = ("/" + base if base else "") + "/documentation/"
missing = set()
pages = list(site.glob("data/documentation/**/*.json"))
for page in pages:
    for reference in json.loads(page.read_text()).get("references", {}).values():
        url = reference.get("url", "").split("#")[0]
        if url.startswith(prefix) and not (site / "documentation" / url[len(prefix):] / "index.html").exists():
            missing.add(url)
if missing:
    sys.exit("These pages are linked and do not exist: " + ", ".join(sorted(missing)))
print(f"{len(pages)} pages in {site}")
PYTHON
