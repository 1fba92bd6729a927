// npm's spdy as a client that takes what is pushed: prints a line for the response, and for each of
// COUNT pushes. usage: node push.js PROTOCOL PORT PATH COUNT
'use strict'
const https = require('https')
const spdy = require(process.env.JUDGES + '/spdy')
const [protocol, port, path, count] = process.argv.slice(2)
const agent = spdy.createAgent({
  host: '127.0.0.1',
  port: Number(port),
  servername: 'localhost',
  rejectUnauthorized: false,
  maxVersion: 'TLSv1.2',
  spdy: { protocols: [protocol], connection: { headerCompression: true } }
})
let left = Number(count) + 1
function read (what, stream) {
  let bytes = 0
  let sum = 0
  stream.on('error', (error) => { console.error(error); process.exit(1) })
  stream.on('data', (data) => {
    bytes += data.length
    for (const byte of data) sum = (sum + byte) % 65521
  })
  stream.on('end', () => {
    console.log(`${what} ${bytes} ${sum}`)
    left -= 1
    if (left === 0) {
      agent.close(() => process.exit(0))
      setTimeout(() => process.exit(0), 500)
    }
  })
}
const options = { host: 'localhost', agent, method: 'GET', path }
const request = https.request(options, (response) => read(`${path} ${response.statusCode}`, response))
request.on('push', (stream) => read(`push ${stream.method} ${stream.path}`, stream))
request.on('error', (error) => { console.error(error); process.exit(1) })
request.end()
