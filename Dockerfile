# The image that charts/nodeyard runs, for who has Docker: docker build -t REGISTRY/nodeyard:0.1.0 .
# `make image` builds one of the same wheels without it.
FROM python:3.11-slim-bookworm AS build
RUN pip install --no-cache-dir uv==0.13.7
ENV UV_PROJECT_ENVIRONMENT=/opt/nodeyard \
    UV_PYTHON_DOWNLOADS=never \
    UV_LINK_MODE=copy \
    UV_COMPILE_BYTECODE=1
WORKDIR /src
# Dependencies first, exactly those of the lock: they stay cached when only the source changes.
COPY pyproject.toml uv.lock ./
COPY testbed/pyproject.toml testbed/pyproject.toml
RUN uv sync --frozen --no-dev --no-install-workspace
COPY README.md LICENSE ./
COPY src src
RUN uv sync --frozen --no-dev --no-editable

FROM python:3.11-slim-bookworm
COPY --from=build /opt/nodeyard /opt/nodeyard
ENV PATH=/opt/nodeyard/bin:$PATH
USER 65532:65532
ENTRYPOINT ["nodeyard"]
CMD ["run", "--help"]
