// A worker of a job queue whose jobs never end by themselves.
//
//   node queue.js bull|bullmq PORT          works, and looks for stalled jobs every 300 ms
//   node queue.js bull|bullmq PORT add      adds a job, deduplicated under "invoice-7"
//
// The worker says "waiting" when it is ready and "held ID" when it has a job, the
// other says "added ID" and ends.
'use strict'

const [library, port, add] = process.argv.slice(2)
const say = word => process.stdout.write(word + '\n')
const connection = { port: Number(port), host: '127.0.0.1', maxRetriesPerRequest: null }
const forever = new Promise(() => {})

const libraries = {
  async bullmq () {
    const { Queue, Worker } = require('bullmq')
    if (add) {
      const queue = new Queue('mail', { connection })
      const job = await queue.add('send', { to: 7 }, { deduplication: { id: 'invoice-7' } })
      say('added ' + job.id)
      return queue.close()
    }
    const worker = new Worker('mail', job => { say('held ' + job.id); return forever }, { connection, stalledInterval: 300 })
    worker.on('error', err => console.error(err))
    await worker.waitUntilReady()
    say('waiting')
    return forever
  },

  async bull () {
    const Queue = require('bull')
    const queue = new Queue('mail', { redis: { port: Number(port), host: '127.0.0.1' }, settings: { stalledInterval: 300 } })
    if (add) {
      const job = await queue.add({ to: 7 })
      say('added ' + job.id)
      return queue.close()
    }
    queue.process(job => { say('held ' + job.id); return forever })
    queue.on('error', err => console.error(err))
    await queue.isReady()
    say('waiting')
    return forever
  }
}

process.stdin.on('end', () => process.exit(0)).resume()
libraries[library]().then(() => process.exit(0), err => { console.error(err); process.exit(1) })
