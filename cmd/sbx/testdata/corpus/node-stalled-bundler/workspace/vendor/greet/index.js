exports.greet = (name) => `hello, ${name}\n`;
