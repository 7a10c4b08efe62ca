// Takes one lock of one library and holds it until its input ends.
//
//   node lock.js LIBRARY PORT NAME
//
// Says "waiting" before it asks for the lock and "held" when it has it. Told to
// "release", it releases and says "released", or "lost" if the library finds that
// the lock is not its own any more.
'use strict'

const [library, port, name] = process.argv.slice(2)
const say = word => process.stdout.write(word + '\n')
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

function ioredis () {
  const Redis = require('ioredis')
  return new Redis({ port: Number(port), host: '127.0.0.1' })
}

// Each takes the lock and returns how it is released: true if it was its own.
const libraries = {
  async redlock () {
    const Redlock = require('redlock')
    const redlock = new Redlock([ioredis()], { retryCount: -1, retryDelay: 50, retryJitter: 10 })
    const lock = await redlock.lock(name, 30000)
    return () => lock.unlock().then(() => true, () => false)
  },

  async 'sesamecare-redlock' () {
    const { Redlock } = require('@sesamecare-oss/redlock')
    const redlock = new Redlock([ioredis()], { retryCount: -1, retryDelay: 50, retryJitter: 10 })
    redlock.on('error', () => {})
    const lock = await redlock.acquire([name], 30000)
    // It takes a key that is gone for one released, so it is asked to extend it.
    redlock.settings && (redlock.settings.retryCount = 0)
    return () => lock.extend(30000).then(() => true, () => false)
  },

  async mutex () {
    const { Mutex } = require('redis-semaphore')
    let lost = false
    const mutex = new Mutex(ioredis(), name, {
      acquireTimeout: 30000,
      identifierSuffix: 'web-1:4711',
      onLockLost: () => { lost = true }
    })
    await mutex.acquire()
    return async () => {
      await mutex._processRefresh() // as its timer does every 8 s
      await mutex.release()
      return !lost
    }
  },

  async semaphore () {
    const { MultiSemaphore } = require('redis-semaphore')
    let lost = false
    const semaphore = new MultiSemaphore(ioredis(), name, 3, 2, {
      acquireTimeout: 30000,
      onLockLost: () => { lost = true }
    })
    await semaphore.acquire()
    return async () => {
      await semaphore._processRefresh()
      await semaphore.release()
      return !lost
    }
  },

  async 'ioredis-lock' () {
    const { createLock } = require('ioredis-lock')
    const lock = createLock(ioredis(), { timeout: 30000, retries: 1000, delay: 20 })
    await lock.acquire(name)
    return () => lock.release().then(() => true, () => false)
  },

  async 'node-redis-lock' () {
    const Lock = require('node-redis-lock')
    const lock = new Lock({ port: Number(port), host: '127.0.0.1', namespace: 'node-redis-lock' })
    const call = (what, ...args) => new Promise((resolve, reject) => lock[what](...args, err => err ? reject(err) : resolve()))
    while (!await call('acquire', name, 30).then(() => true, () => false)) await sleep(20)
    return () => call('release', name).then(() => true, () => false)
  },

  async 'redis-lock' () {
    const client = require('redis4').createClient({ url: 'redis://127.0.0.1:' + port })
    await client.connect()
    const release = await require('redis-lock')(client)(name, 30000)
    return async () => (await release()) === 1
  }
}

async function main () {
  say('waiting')
  const release = await libraries[library]()
  say('held')
  for await (const line of require('readline').createInterface({ input: process.stdin })) {
    if (line === 'release') say(await release() ? 'released' : 'lost')
  }
  process.exit(0)
}

main().catch(err => { console.error(err); process.exit(1) })
