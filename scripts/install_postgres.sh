#!/bin/sh
# Install PostgreSQL's server for the tests, where it is absent and apt-get is there.
# No cluster is made and no server is started: the tests make their own.
set -eu

find_server() {
    for place in "$(command -v initdb || true)" /usr/lib/postgresql/*/bin/initdb \
        /usr/pgsql-*/bin/initdb /usr/local/pgsql/bin/initdb \
        /opt/homebrew/opt/postgresql*/bin/initdb /usr/local/opt/postgresql*/bin/initdb; do
        if [ -n "$place" ] && [ -x "$place" ]; then
            echo "$place"
            return 0
        fi
    done
    return 1
}

if server=$(find_server); then
    echo "PostgreSQL is there: $server"
    exit 0
fi

if ! command -v apt-get >/dev/null 2>&1; then
    echo "PostgreSQL's server (initdb, postgres) is not installed; install it, e.g. with" >&2
    echo "  dnf install postgresql-server     or     brew install postgresql" >&2
    exit 1
fi

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Read by postgresql-common when the server's package is set up.
as_root mkdir -p /etc/postgresql-common
if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    echo "create_main_cluster = false" | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
fi
as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends postgresql

if server=$(find_server); then
    echo "PostgreSQL is there now: $server"
else
    echo "apt-get installed postgresql, but there is no initdb; look at its messages above" >&2
    exit 1
fi
