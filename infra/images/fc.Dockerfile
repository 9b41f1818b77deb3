# A function on Function Compute as a container image, for a newer Python than the platform has. The build context is the
# folder that `costguard bundle` wrote into; the bundle must be built for the Python of BASE:
#   costguard bundle fc --python 3.13 --out bundles
#   docker build --platform linux/amd64 --provenance=false --file infra/images/fc.Dockerfile \
#     --build-arg FUNCTION=idle_gpu --tag costguard-idle-gpu bundles
# docs/bundles.md says how to pin BASE by its digest. The platform sends calls over HTTP to port 9000.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS unpacked
ARG FUNCTION=idle_gpu
COPY fc/SHA256SUMS fc/${FUNCTION}.zip /bundle/
RUN cd /bundle && sha256sum --check --ignore-missing SHA256SUMS && python -m zipfile --extract ${FUNCTION}.zip /function

FROM ${BASE}
# The base has its own library without compiled files, and at run time nobody may write them: 0.3 s of each start.
RUN python -m compileall -q --invalidation-mode unchecked-hash -x site-packages \
    "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
ARG FUNCTION=idle_gpu
ENV FUNCTION=${FUNCTION} PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY --from=unpacked /function /function
WORKDIR /function
USER nobody
EXPOSE 9000
CMD ["sh", "-c", "exec python -m costguard.faas.container fc ${FUNCTION}"]
