# A small image for the CPU: torch comes from the index of CPU builds, so no CUDA wheel is fetched.
#   docker build --build-arg TORCH_INDEX=… -t isotrope .      PyTorch's install page names the index: pip, Linux, CPU
#   docker run --rm -v "$PWD:/data" isotrope encode builtin sentences.txt --output vectors.npy
#   docker run --rm -p 127.0.0.1:8080:8080 isotrope serve builtin --host 0.0.0.0
FROM python:3.12-slim AS build

ARG TORCH_INDEX
ARG EXTRAS=search,serve

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/isotrope
ENV PATH=/opt/isotrope/bin:$PATH

WORKDIR /src
COPY constraints.txt ./
RUN pip install --constraint constraints.txt --index-url "${TORCH_INDEX:?give the index of CPU builds}" torch
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --constraint constraints.txt ".[$EXTRAS]"

FROM python:3.12-slim

RUN useradd --create-home --uid 1000 isotrope && mkdir /data && chown isotrope /data
COPY --from=build /opt/isotrope /opt/isotrope
ENV PATH=/opt/isotrope/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HF_HUB_DISABLE_TELEMETRY=1 \
    ISOTROPE_CACHE=/tmp/isotrope
USER 1000
WORKDIR /data
EXPOSE 8080
ENTRYPOINT ["isotrope"]
CMD ["--help"]
