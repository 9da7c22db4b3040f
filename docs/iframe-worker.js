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
      this.scope.postMessage = data => setTimeout(() => this.receive(data))
      this.loaded = new Promise((resolve, reject) => {
        const script = this.scope.document.createElement("script")
        script.src = new URL(url, location)
        script.onload = resolve
        script.onerror = reject
        this.scope.document.head.append(script)
      })
    }

    receive(data) {
      if (this.onmessage) this.onmessage(new MessageEvent("message", { data }))
    }

    postMessage(data) {
      this.loaded.then(() => this.scope.onmessage({ data }))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
