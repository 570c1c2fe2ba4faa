# The images of the operator (`make image`) and of evidence runners (`make runner-image`). Their bases are arguments, so that
# a registry of your own and a digest can be named: --build-arg PYTHON_IMAGE=registry.local/python@sha256:...
ARG PYTHON_IMAGE=python:3.13-slim
ARG VLLM_IMAGE=vllm/vllm-openai:v0.32.0

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY operator ./operator
# Only the operator's extra: with the cluster client of the command line beside it, kopf imports that too and memory doubles.
RUN python -m venv /opt/servingplan \
    && /opt/servingplan/bin/pip install --no-cache-dir --disable-pip-version-check ".[operator]" \
    && /opt/servingplan/bin/python -m compileall -q /opt/servingplan/lib \
    && /opt/servingplan/bin/pip uninstall --yes pip

FROM ${VLLM_IMAGE} AS runner
LABEL org.opencontainers.image.title="servingplan-runner" \
      org.opencontainers.image.description="Measures and evaluates vLLM servers: vLLM with servingplan[bench,evaluate]" \
      org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY operator ./operator
# Beside vLLM, whose `vllm bench serve` sends the requests; what vLLM has installed stays as it is.
RUN python3 -m pip install --no-cache-dir --disable-pip-version-check ".[bench,evaluate]" && rm -rf /src
ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /
USER 65532:65532
ENTRYPOINT ["servingplan"]

# The last one is what `build` without a target makes.
FROM ${PYTHON_IMAGE} AS operator
LABEL org.opencontainers.image.title="servingplan" \
      org.opencontainers.image.description="Operator that has LLM replicas on vLLM ready before the morning ramp" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/servingplan /opt/servingplan
ENV PATH=/opt/servingplan/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
# A number, so that the kubelet can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["servingplan", "operator"]
