// Runs the worker of the search in a hidden frame, if the site is opened from the file system: browsers start workers
// only from a server. The file has this name because the offline plugin of Zensical looks for it, and would otherwise
// load such a script from the network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.title = "Search"
      document.body.append(this.frame)
      this.scope = this.frame.contentWindow
      this.scope.postMessage = data => this.receive(structuredClone(data))
      this.loaded = new Promise((resolve, reject) => {
        const script = this.scope.document.createElement("script")
        script.src = new URL(url, location)
        script.onload = resolve
        script.onerror = reject
        this.scope.document.head.append(script)
      })
    }

    // Messages are copies, as those of a worker: each side changes what it gets.
    postMessage(data) {
      const copy = structuredClone(data)
      this.loaded.then(() => this.scope.onmessage({ data: copy }))
    }

    receive(data) {
      setTimeout(() => this.onmessage?.(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
