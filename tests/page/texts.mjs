// What the hostile server and client say, and how the page is to show the worst of it.

export const texts = {
  name: '<b>bold</b>',
  tool: 'pay<img src=x onerror=globalThis.owned=1>',
  description: '<script>globalThis.owned=1</script> \u202Etxt.exe\u202C',
  program: '<script>globalThis.owned=1</script>\u202Egnp.exe',
  stderr: [
    '<script>globalThis.owned=1</script>',
    '<img src=x onerror=globalThis.owned=1>',
    '\u001B[31mred\u001B[0m \u001B]0;title\u0007 \u009B2J',
    'user \u202Egnp.exe\u202C \u200Bhidden\u2066',
    'plain words'
  ]
};

// As text: controls as terminals show them, or by their numbers.
export const shown = {
  program: '<script>globalThis.owned=1</script>\u2039U+202E\u203Agnp.exe',
  stderr: [
    '<script>globalThis.owned=1</script>',
    '<img src=x onerror=globalThis.owned=1>',
    '^[[31mred^[[0m ^[]0;title^G \u2039U+009B\u203A2J',
    'user \u2039U+202E\u203Agnp.exe\u2039U+202C\u203A \u2039U+200B\u203Ahidden\u2039U+2066\u203A',
    'plain words'
  ]
};
