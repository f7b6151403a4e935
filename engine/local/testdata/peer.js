// A peer that speaks JSON-RPC over stdin and stdout, framed as language servers
// frame it: Content-Length, an empty line, the message.
'use strict'

let rest = Buffer.alloc(0)
let initialized = false
let down = false

function send(message) {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))
  process.stdout.write(`Content-Length: ${body.length}\r\n\r\n`)
  process.stdout.write(body)
}

const methods = {
  initialize: () => {
    initialized = true
    return { capabilities: { echo: true }, name: 'peer' }
  },
  echo: (params) => params,
  shutdown: () => {
    down = true
    return null
  },
}

function handle({ id, method, params }) {
  if (method === 'exit') process.exit(down ? 0 : 1)
  if (method !== 'initialize' && !initialized) return send({ id, error: { code: -32002, message: 'not initialized' } })
  if (!methods[method]) return send({ id, error: { code: -32601, message: `no method ${method}` } })
  if (method === 'echo' && params.n % 100 === 0) send({ method: 'progress', params: { n: params.n } })
  send({ id, result: methods[method](params) })
}

process.stdin.on('data', (chunk) => {
  rest = Buffer.concat([rest, chunk])
  for (;;) {
    const head = rest.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = Number(/Content-Length: (\d+)/i.exec(rest.subarray(0, head).toString())[1])
    const end = head + 4 + length
    if (rest.length < end) return
    const message = JSON.parse(rest.subarray(head + 4, end).toString())
    rest = rest.subarray(end)
    handle(message)
  }
})
process.stdin.on('end', () => process.exit(3))
process.stderr.write('peer is up\n')
