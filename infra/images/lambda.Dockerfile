# A function on AWS Lambda as a container image. The build context is the folder that `costguard bundle` wrote into:
#   costguard bundle lambda --out bundles
#   docker build --platform linux/amd64 --provenance=false --file infra/images/lambda.Dockerfile \
#     --build-arg FUNCTION=idle_gpu --tag costguard-idle-gpu bundles
# docs/bundles.md says how to pin BASE by its digest, and which Python the bundle must be built for.
ARG BASE=public.ecr.aws/lambda/python:3.13

FROM ${BASE} AS unpacked
ARG FUNCTION=idle_gpu
COPY lambda/SHA256SUMS lambda/${FUNCTION}.zip /bundle/
RUN cd /bundle && sha256sum --check --ignore-missing SHA256SUMS && python -m zipfile --extract ${FUNCTION}.zip /function

FROM ${BASE}
COPY --from=unpacked /function ${LAMBDA_TASK_ROOT}
CMD ["handler.handler"]
