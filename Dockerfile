# An image with the package, Spark, Java and compiled kernels:
#
#     docker build -t anabranch .
#     docker run --rm --read-only --tmpfs /tmp:exec -v "$PWD:/data" anabranch run my.abq
#
# docs/cluster.md says more.

FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /source

# The locked packages, with checked hashes, as wheels. The build backend comes first, as in scripts/install.
COPY requirements.lock ./
RUN sed -n '/^setuptools==/,/[0-9a-f]$/p' requirements.lock > backend.lock \
    && pip install --require-hashes -r backend.lock \
    && pip wheel --require-hashes --no-deps --no-build-isolation --wheel-dir /wheels -r requirements.lock

# The package takes what it needs from these wheels, and nothing from an index; tools for development stay behind.
COPY pyproject.toml setup.py README.md LICENSE ./
COPY src src
COPY examples examples
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && python -m venv --without-pip /opt/anabranch \
    && pip --python /opt/anabranch/bin/python install --no-index --find-links /wheels anabranch

# The kernels are compiled into the package, for all processors: the image may run on another one.
RUN /opt/anabranch/bin/python -m anabranch.compiled.build --portable

FROM python:3.11-slim
COPY --from=build /opt/anabranch /opt/anabranch
# Nothing is written but answers, and temporary files in /tmp: the root file system can be read-only.
ENV PATH="/opt/anabranch/bin:$PATH" PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
RUN useradd --uid 1000 --no-create-home anabranch
USER anabranch
WORKDIR /data
RUN anabranch doctor
ENTRYPOINT ["anabranch"]
CMD ["--help"]
