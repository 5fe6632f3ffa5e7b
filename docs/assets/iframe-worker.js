// Browsers refuse workers to pages opened as files, so the search runs in a hidden frame there.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inner = frame.contentWindow
      this.inner.reply = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.loaded = new Promise((done) => (frame.onload = done))
      const scripts = `<script>postMessage = reply</script><script src="${url}"></script>`
      frame.contentDocument.write(scripts)
      frame.contentDocument.close()
    }
    async postMessage(data) {
      await this.loaded
      this.inner.dispatchEvent(new MessageEvent("message", { data }))
    }
  }
}
