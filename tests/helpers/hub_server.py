"""A Hub on this machine: the endpoints and headers that huggingface_hub relies on."""

import hashlib
import json
import re
from collections import Counter

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

LARGE = re.compile(r"\.(safetensors|bin)$")


class StubHub:
    """Model repositories in memory; large files are redirected to a CDN as on the Hub.

    `downloads` counts how often each file's content was sent, by SHA-256.
    """

    def __init__(self, server: HTTPServer):
        self.url = f"http://localhost:{server.port}"
        self._cdn = f"http://127.0.0.1:{server.port}/cdn"  # another host, as for the Hub
        self.downloads: Counter[str] = Counter()
        self._refs: dict[tuple[str, str], str] = {}
        self._commits: dict[tuple[str, str], dict[str, bytes]] = {}
        self._blobs: dict[str, bytes] = {}
        server.expect_request(re.compile(".*")).respond_with_handler(self._answer)

    def push(self, repo: str, branch: str, files: dict[str, bytes]) -> str:
        """Let `branch` be `files` and return the commit."""
        listing = json.dumps({n: hashlib.sha256(c).hexdigest() for n, c in files.items()})
        commit = hashlib.sha1(f"{branch}{listing}".encode()).hexdigest()
        self._refs[repo, branch] = commit
        self._commits[repo, commit] = files
        self._blobs.update({hashlib.sha256(c).hexdigest(): c for c in files.values()})
        return commit

    def _answer(self, request: Request) -> Response:
        path = request.path
        if match := re.fullmatch(r"/cdn/(\w+)", path):
            return self._content(match[1], request)
        if match := re.fullmatch(
            r"/api/models/([\w.-]+/[\w.-]+)/(refs|revision|tree)/?(.*)", path
        ):
            repo, kind, revision = match.groups()
            if not any(name == repo for name, _ in self._refs):
                return self._error(404, "RepoNotFound")
            if kind == "refs":
                return self._list_refs(repo)
            revision, _, folder = revision.partition("/")
            if kind == "tree" and folder:  # no repository here has folders
                return self._error(404, "EntryNotFound")
            commit = self._refs.get((repo, revision), revision)
            if (repo, commit) not in self._commits:
                return self._error(404, "RevisionNotFound")
            return self._info(repo, commit) if kind == "revision" else self._tree(repo, commit)
        if match := re.fullmatch(r"/([\w.-]+/[\w.-]+)/resolve/([^/]+)/(.+)", path):
            return self._resolve(*match.groups(), request)
        return Response(status=404)

    def _error(self, status: int, code: str) -> Response:
        return Response(status=status, headers={"X-Error-Code": code, "X-Error-Message": code})

    def _json(self, value: object) -> Response:
        return Response(json.dumps(value), content_type="application/json")

    def _list_refs(self, repo: str) -> Response:
        branches = [
            {"name": branch, "ref": f"refs/heads/{branch}", "targetCommit": commit}
            for (name, branch), commit in self._refs.items()
            if name == repo
        ]
        return self._json({"branches": branches, "converts": [], "tags": []})

    def _files(self, repo: str, commit: str, name_key: str, sha_key: str) -> list[dict]:
        files = []
        for name, content in self._commits[repo, commit].items():
            file = {
                name_key: name,
                "size": len(content),
                "oid": hashlib.sha1(content).hexdigest(),
            }
            if LARGE.search(name):
                digest = hashlib.sha256(content).hexdigest()
                file["lfs"] = {sha_key: digest, "size": len(content), "pointerSize": 134}
            files.append({**file, "type": "file"})
        return files

    def _info(self, repo: str, commit: str) -> Response:
        siblings = self._files(repo, commit, "rfilename", "sha256")
        return self._json({"id": repo, "modelId": repo, "sha": commit, "siblings": siblings})

    def _tree(self, repo: str, commit: str) -> Response:
        return self._json(self._files(repo, commit, "path", "oid"))

    def _resolve(self, repo: str, revision: str, name: str, request: Request) -> Response:
        commit = self._refs.get((repo, revision), revision)
        files = self._commits.get((repo, commit), {})
        if name not in files:
            return self._error(404, "EntryNotFound")
        content = files[name]
        digest = hashlib.sha256(content).hexdigest()
        headers = {"X-Repo-Commit": commit}
        if not LARGE.search(name):
            headers["ETag"] = f'"{hashlib.sha1(content).hexdigest()}"'
            return self._content(digest, request, headers)
        headers |= {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(content))}
        return Response(status=302, headers={**headers, "Location": f"{self._cdn}/{digest}"})

    def _content(self, digest: str, request: Request, headers: dict | None = None) -> Response:
        content = self._blobs[digest]
        if request.method == "HEAD":
            return Response(headers={**(headers or {}), "Content-Length": str(len(content))})
        self.downloads[digest] += 1
        return Response(content, headers=headers)
