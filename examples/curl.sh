#!/bin/sh
# evenhand by curl alone: one comparison, then a data set judged in the background.
# Needs a server at EVENHAND_URL (evenhand serve), and EVENHAND_TOKEN if it requires one.
set -eu
url=${EVENHAND_URL:-http://127.0.0.1:8321}

ask() {
    path=$1
    shift
    curl --silent --show-error --fail-with-body "$url$path" \
        ${EVENHAND_TOKEN:+--header "Authorization: Bearer $EVENHAND_TOKEN"} "$@"
    echo
}

# One pair: the contract's verdict, or a problem that says what is wrong and what to do.
ask /v1/compare --json '{
  "prompt": "What is 7 times 8?",
  "responseA": "54",
  "responseB": "56",
  "criteria": ["accuracy"]
}'

# A data set, as JSON Lines: it is stored, then judged in the background.
run=$(ask '/v1/runs?criteria=accuracy&maxCalls=100' --header 'Content-Type: application/x-ndjson' --data-binary @- <<'PAIRS'
{"id": "1", "prompt": "What is 7 times 8?", "responseA": "54", "responseB": "56"}
{"id": "2", "prompt": "Name a prime.", "responseA": "Nine is one.", "responseB": "Seven."}
PAIRS
)
echo "$run"
id=$(echo "$run" | grep -o '"id":"[^"]*"' | cut -d '"' -f 4)

# Follow its progress; curl ends when the run does.
ask "/v1/runs/$id/events" --no-buffer

# Its verdicts, and its report on the two sides.
ask "/v1/runs/$id/verdicts"
ask "/v1/runs/$id/report"
