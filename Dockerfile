# evenhand as a command: docker run --rm -e OPENAI_API_KEY -v "$PWD:/data" evenhand run pairs.jsonl …
FROM python:3.12-slim AS build
WORKDIR /source
COPY requirements/image.txt requirements/
# Only what the lock file pins, by hash; then the source itself, from here.
RUN python -m venv /opt/evenhand \
    && /opt/evenhand/bin/pip install --no-cache-dir --disable-pip-version-check \
        --require-hashes -r requirements/image.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/evenhand/bin/pip install --no-cache-dir --disable-pip-version-check \
        --no-index --no-deps --no-build-isolation .

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 evenhand \
    && install --directory --owner=evenhand /data
COPY --from=build /opt/evenhand /opt/evenhand
ENV PATH="/opt/evenhand/bin:$PATH" \
    PYTHONUNBUFFERED=1 \
    EVENHAND_STORE=/data/evenhand.db
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8321
ENTRYPOINT ["evenhand"]
CMD ["--help"]
