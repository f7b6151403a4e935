const http = require("node:http");
const { greet } = require("greet");

const server = http.createServer((req, res) => {
  if (req.url === "/health") {
    res.end("ok");
    return;
  }
  res.end(greet("world"));
});
server.listen(process.env.PORT, () => console.log("listening on " + process.env.PORT));
