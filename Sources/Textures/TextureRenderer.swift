// SPDX-License-Identifier: Apache-2.0

import CGLES
public import OvercrankMediaCore

/// Triangles on which a frame is drawn, with the position in the frame for each corner.
public struct TextureMesh: Hashable, Sendable {
  /// Five numbers for each corner: x, y and z, then the horizontal and vertical position in the
  /// frame, each from 0 at the upper left to 1.
  public var vertices: [Float]

  /// Creates triangles: three corners of five numbers each.
  ///
  /// The call traps if the number of values is not a multiple of 15.
  public init(_ vertices: [Float]) {
    precondition(vertices.count % 15 == 0, "a triangle has three corners of five numbers")
    self.vertices = vertices
  }

  /// A rectangle that fills the whole target image, whose coordinates run from -1 to 1.
  public static let wholeImage = TextureMesh([
    -1, 1, 0, 0, 0, -1, -1, 0, 0, 1, 1, -1, 0, 1, 1,
    -1, 1, 0, 0, 0, 1, -1, 0, 1, 1, 1, 1, 0, 1, 0,
  ])
}

/// Draws frames with OpenGL ES 3.
///
/// A context must be current on the calling thread at every call, and when the renderer is released.
public final class TextureRenderer {
  private let program: GLuint
  private let uniforms: [String: GLint]

  /// The identity matrix, which leaves corners unchanged.
  public static let identity: [Float] = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]

  /// Compiles the shaders.
  ///
  /// - Throws: `MediaError` with `.noRenderer` without a current context, or if the context cannot
  ///   compile the shaders.
  public init() throws(MediaError) {
    guard eglGetCurrentContext() != nil else { throw .noRenderer("no context is current") }
    program = glCreateProgram()
    for (kind, source) in [
      (GL_VERTEX_SHADER, Self.vertexSource), (GL_FRAGMENT_SHADER, Self.fragmentSource),
    ] {
      let shader = glCreateShader(GLenum(kind))
      source.withCString { text in
        var text: UnsafePointer<CChar>? = text
        glShaderSource(shader, 1, &text, nil)
      }
      glCompileShader(shader)
      glAttachShader(program, shader)
      glDeleteShader(shader)
    }
    glBindAttribLocation(program, 0, "position")
    glBindAttribLocation(program, 1, "coordinate")
    glLinkProgram(program)
    var status: GLint = 0
    glGetProgramiv(program, GLenum(GL_LINK_STATUS), &status)
    guard status == GL_TRUE else {
      var log = [CChar](repeating: 0, count: 1_024)
      glGetProgramInfoLog(program, GLsizei(log.count), nil, &log)
      glDeleteProgram(program)
      let text = log.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
      throw .noRenderer("its shaders do not compile: \(String(decoding: text, as: UTF8.self))")
    }
    var uniforms: [String: GLint] = [:]
    for name in ["transform", "kind", "order", "offset", "conversion", "luma", "first", "second"] {
      uniforms[name] = glGetUniformLocation(program, name)
    }
    self.uniforms = uniforms
  }

  deinit { glDeleteProgram(program) }

  /// Draws a frame on triangles.
  ///
  /// - Parameters:
  ///   - texture: The frame.
  ///   - mesh: The triangles.
  ///   - transform: A matrix of 16 numbers, column by column, which is applied to the corners of
  ///     the triangles. The call traps for any other count.
  public func draw(
    _ texture: FrameTexture, on mesh: TextureMesh = .wholeImage,
    transform: [Float] = TextureRenderer.identity
  ) {
    precondition(transform.count == 16, "a transform has 16 numbers")
    glUseProgram(program)
    let layout = texture.layout
    for (unit, name) in texture.names.enumerated() {
      glActiveTexture(GLenum(GL_TEXTURE0 + Int32(unit)))
      glBindTexture(GLenum(GL_TEXTURE_2D), name)
    }
    glActiveTexture(GLenum(GL_TEXTURE0))
    let last = GLint(texture.names.count - 1)
    glUniform1i(location("luma"), 0)
    glUniform1i(location("first"), min(1, last))
    glUniform1i(location("second"), last)
    glUniform1i(location("kind"), layout.colorModel.rawValue)
    glUniform3iv(location("order"), 1, layout.order)
    let (offset, matrix) = layout.conversion
    glUniform3fv(location("offset"), 1, offset)
    glUniformMatrix3fv(location("conversion"), 1, GLboolean(GL_FALSE), matrix)
    glUniformMatrix4fv(location("transform"), 1, GLboolean(GL_FALSE), transform)
    glBindBuffer(GLenum(GL_ARRAY_BUFFER), 0)
    glBindVertexArray(0)
    mesh.vertices.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return }
      let stride = GLsizei(5 * MemoryLayout<Float>.stride)
      glVertexAttribPointer(0, 3, GLenum(GL_FLOAT), GLboolean(GL_FALSE), stride, start)
      glVertexAttribPointer(
        1, 2, GLenum(GL_FLOAT), GLboolean(GL_FALSE), stride,
        start + 3 * MemoryLayout<Float>.stride)
      glEnableVertexAttribArray(0)
      glEnableVertexAttribArray(1)
      glDrawArrays(GLenum(GL_TRIANGLES), 0, GLsizei(mesh.vertices.count / 5))
    }
    glDisableVertexAttribArray(0)
    glDisableVertexAttribArray(1)
  }

  /// Whether nearer triangles hide those behind them.
  ///
  /// It is false in a new context.
  public var testsDepth: Bool {
    get { glIsEnabled(GLenum(GL_DEPTH_TEST)) == GLboolean(GL_TRUE) }
    set { newValue ? glEnable(GLenum(GL_DEPTH_TEST)) : glDisable(GLenum(GL_DEPTH_TEST)) }
  }

  private func location(_ name: String) -> GLint { uniforms[name] ?? -1 }

  private static let vertexSource = """
    #version 300 es
    in vec3 position;
    in vec2 coordinate;
    uniform mat4 transform;
    out vec2 point;
    void main() {
      point = coordinate;
      gl_Position = transform * vec4(position, 1.0);
    }
    """

  private static let fragmentSource = """
    #version 300 es
    precision highp float;
    precision highp sampler2D;
    in vec2 point;
    out vec4 color;
    uniform sampler2D luma;
    uniform sampler2D first;
    uniform sampler2D second;
    uniform int kind;
    uniform ivec3 order;
    uniform vec3 offset;
    uniform mat3 conversion;
    void main() {
      vec4 texel = texture(luma, point);
      if (kind == 0) {
        color = vec4(texel[order.x], texel[order.y], texel[order.z], 1.0);
        return;
      }
      if (kind == 1) {
        color = vec4(texel.rrr, 1.0);
        return;
      }
      float u = texture(first, point)[order.y];
      float v = kind == 2 ? texture(second, point)[order.z] : texture(first, point)[order.z];
      vec3 yuv = vec3(texel[order.x], u, v) - offset;
      color = vec4(clamp(conversion * yuv, 0.0, 1.0), 1.0);
    }
    """
}
