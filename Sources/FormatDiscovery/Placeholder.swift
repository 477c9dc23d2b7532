public import MediaTiming

public struct CaptureDevice: Sendable {
  public var path: String?; public var id: String;
  public enum Kind: Sendable { case v4l2, synthetic, file }; public var kind: Kind
  public init(path: String?, id: String, kind: Kind) {
    self.path = path; self.id = id; self.kind = kind
  }
}
public struct CaptureFormat: Sendable {
  public var id: String; public var maxFrameRate: FrameRate; public var width: Int;
  public var height: Int; public var fourcc: String
  public init(id: String, maxFrameRate: FrameRate, width: Int, height: Int, fourcc: String) {
    self.id = id; self.maxFrameRate = maxFrameRate; self.width = width; self.height = height;
    self.fourcc = fourcc
  }
}
