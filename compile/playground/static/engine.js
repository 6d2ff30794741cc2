// The worker as the page sees it: questions and answers, in order.

class Engine {
  constructor(source) {
    this.waiting = new Map();
    this.number = 0;
    this.url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = new Worker(this.url);
    this.worker.onmessage = ({ data }) => {
      const { resolve, reject } = this.waiting.get(data.number);
      this.waiting.delete(data.number);
      if (data.error) reject(new Error(data.error));
      else resolve(data);
    };
    this.worker.onerror = (event) => { for (const { reject } of this.waiting.values()) reject(new Error(event.message)); };
  }
  ask(question, transfer = []) {
    const number = this.number++;
    return new Promise((resolve, reject) => {
      this.waiting.set(number, { resolve, reject });
      this.worker.postMessage({ ...question, number }, transfer);
    });
  }
  async load(models) {
    const unpacked = await Promise.all(models.map(async (model) => ({
      about: { dims: model.dims, starts: model.starts, startToken: model.startToken, outputs: model.outputs, tensors: model.tensors, shapes: model.shapes },
      distances: new Int32Array(await inflate(model.distances)), values: new Float32Array(await inflate(model.values)),
    })));
    await this.ask({ kind: "load", models: unpacked }, unpacked.flatMap((m) => [m.distances.buffer, m.values.buffer]));
  }
}
