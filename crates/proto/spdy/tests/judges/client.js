// npm's spdy as a client: prints a line for each response. usage: node client.js PROTOCOL PORT
'use strict'
const https = require('https')
const spdy = require(process.env.JUDGES + '/spdy')
const [protocol, port] = process.argv.slice(2)
const agent = spdy.createAgent({
  host: '127.0.0.1',
  port: Number(port),
  servername: 'localhost',
  rejectUnauthorized: false,
  maxVersion: 'TLSv1.2',
  spdy: { protocols: [protocol], connection: { headerCompression: true } }
})
function ask (method, path, body) {
  return new Promise((resolve, reject) => {
    const options = { host: 'localhost', agent, method, path, headers: { 'x-asked': path } }
    const request = https.request(options, (response) => {
      let count = 0
      let sum = 0
      response.on('data', (data) => {
        count += data.length
        for (const byte of data) sum = (sum + byte) % 65521
      })
      response.on('end', () => {
        console.log(`${method} ${path} ${response.statusCode} ${response.headers['x-path']} ${count} ${sum}`)
        resolve()
      })
    })
    request.on('error', reject)
    request.end(body)
  })
}
async function all () {
  await ask('GET', '/small')
  await ask('GET', '/large')
  await ask('POST', '/upload', Buffer.alloc(300000, 'abcdefg'))
  await Promise.all(['/a', '/b', '/c'].map((path) => ask('GET', path)))
  agent.close(() => process.exit(0))
  setTimeout(() => process.exit(0), 500)
}
all().catch((error) => { console.error(error); process.exit(1) })
