#!/bin/sh
# Install Debian's chromium for the browser tests, where it is absent and apt-get is there, with a
# font that has Chinese characters: without one a screenshot shows boxes.
set -eu

find_browser() {
    for place in "${EVENHAND_TEST_CHROMIUM:-}" "$(command -v chromium || true)" \
        "$(command -v chromium-browser || true)" "$(command -v google-chrome || true)"; do
        if [ -n "$place" ] && [ -x "$place" ]; then
            echo "$place"
            return 0
        fi
    done
    return 1
}

if browser=$(find_browser); then
    echo "chromium is there: $browser"
    exit 0
fi

if ! command -v apt-get >/dev/null 2>&1; then
    echo "chromium is not installed; install it, e.g. with  dnf install chromium  or" >&2
    echo "name one that is there with EVENHAND_TEST_CHROMIUM" >&2
    exit 1
fi

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    chromium fonts-wqy-microhei

if browser=$(find_browser); then
    echo "chromium is there now: $browser"
else
    echo "apt-get installed chromium, but it is not to be found; look at its messages above" >&2
    exit 1
fi
