"use strict";

const fs = require("node:fs");
const http = require("node:http");

if (fs.existsSync(".env") && process.loadEnvFile) process.loadEnvFile();

const greeting = process.env.GREETING || "hello";

const server = http.createServer((req, res) => {
  if (req.url === "/health") {
    res.end("ok\n");
    return;
  }
  console.log(req.method, req.url);
  res.setHeader("Content-Type", "text/plain; charset=utf-8");
  res.end(`${greeting} from node ${process.version}\n`);
});

server.listen(Number(process.env.PORT), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${process.env.PORT}`);
});
