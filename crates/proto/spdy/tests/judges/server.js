// npm's spdy as a server: prints its port. usage: node server.js PROTOCOL KEY CERT
'use strict'
const fs = require('fs')
const spdy = require(process.env.JUDGES + '/spdy')
const [protocol, key, cert] = process.argv.slice(2)
const large = Buffer.alloc(1 << 20, 'abcdefg')
const options = {
  key: fs.readFileSync(key),
  cert: fs.readFileSync(cert),
  maxVersion: 'TLSv1.2',
  // Compression is off unless the connection's options ask for it.
  spdy: { protocols: [protocol], connection: { headerCompression: true } }
}
const server = spdy.createServer(options, (request, response) => {
  if (request.method === 'POST') {
    let count = 0
    let sum = 0
    request.on('data', (data) => {
      count += data.length
      for (const byte of data) sum = (sum + byte) % 65521
    })
    request.on('end', () => response.end(`${count} ${sum}`))
  } else {
    response.setHeader('x-path', request.url)
    response.end(request.url === '/large' ? large : `hello ${request.url}`)
  }
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
